"""`trainctl`, and `python -m ops`.

Exit codes: 0 done, 1 failed or found something, 2 wrong usage or a wrong flag, 130 interrupted.
"""

import sys

from ops.account.region_and_profile import with_account
from ops.cli import app
from ops.printable import printable
from training_cluster.problems import ConfigurationError

_ANYWHERE = ("--region", "--profile", "--as")


def main() -> int:
    """Run the command line; report each error in one message, with an exit code."""
    arguments = _account_first(sys.argv[1:])
    command = _command(arguments)
    try:
        app(arguments, prog_name="trainctl")
    except ConfigurationError as error:
        from ops.usage import OpsError

        # An imported file, or a cluster, may be somebody else's.
        said = "\n".join(map(printable, str(error).split("\n")))
        print(with_account(said), file=sys.stderr)
        return 1 if isinstance(error, OpsError) else 2
    except BrokenPipeError:  # trainctl ... | head
        sys.stderr.close()
        return 1
    except OSError as error:  # such as a full disk, or one that is read only
        where = f"{error.filename}: " if error.filename else ""
        print(printable(f"{command}: {where}{error.strerror or error}"), file=sys.stderr)
        return 1
    except Exception as error:
        # botocore takes a third of a second to load, so it is imported only after an error.
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        if not isinstance(error, BotoCoreError | ClientError | ResponseParserError):
            raise
        from ops.account.aws_errors import explain

        print(f"{command}: {with_account(explain(error))}", file=sys.stderr)
        return 1
    return 0


def _account_first(arguments: list[str]) -> list[str]:
    """Move --region, --profile and --as before the subcommand, so that they may be typed anywhere."""
    first, rest, words = list[str](), list[str](), iter(arguments)
    for word in words:
        if word == "--":
            return [*first, *rest, word, *words]
        if word in _ANYWHERE:
            first += [word, *([value] if (value := next(words, None)) is not None else [])]
        elif word.startswith(tuple(f"{each}=" for each in _ANYWHERE)):
            first.append(word)
        else:
            rest.append(word)
    return [*first, *rest]


def _command(arguments: list[str]) -> str:
    """Return the name of the subcommand, or "trainctl" without one."""
    words = iter(arguments)
    for word in words:
        if word in _ANYWHERE:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return "trainctl"


if __name__ == "__main__":
    sys.exit(main())
