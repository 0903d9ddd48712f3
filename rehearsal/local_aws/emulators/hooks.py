"""The list of all hooks into ministack and moto, and the check that they still fit.

Both emulators are pinned exactly; `moved()` compares each hook with its description, so that an upgrade
reports the changed ones instead of failing in a deploy.
"""

from rehearsal.local_aws.emulators import ministack_hooks, moto_hooks
from rehearsal.local_aws.emulators.hook import Hook, HookMovedError, find, replace

__all__ = ["HOOKS", "Hook", "HookMovedError", "find", "moved", "replace"]

HOOKS = tuple(
    hook
    for module in (ministack_hooks, moto_hooks)
    for value in vars(module).values()
    for hook in (value if isinstance(value, tuple) else (value,))
    if isinstance(hook, Hook)
)


def moved() -> list[str]:
    """Return one sentence for each hook that is missing or different."""
    sentences = []
    for hook in HOOKS:
        try:
            find(hook)
        except HookMovedError as error:
            sentences.append(str(error))
    return sentences
