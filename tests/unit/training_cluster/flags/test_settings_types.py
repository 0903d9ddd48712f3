"""Values of cdk.json that are of another type than their flag: one message, no traceback."""

from training_cluster.flags.settings import Settings
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings


def _message(flag: str, value: object) -> str:
    """Return the refusal of a value; empty where it is taken."""
    try:
        read_settings({flag: value})
    except ConfigurationError as refused:
        return str(refused)
    except Exception as crash:  # one value that crashes must not hide the others
        return f"traceback: {crash!r}"
    return ""


def test_a_value_of_another_type_is_clear() -> None:
    values = [0, 1.5, True, None, [], ["p4d"], {"a": "b"}]
    messages = {
        (flag, str(value)): _message(flag, value) for flag in Settings.model_fields for value in values
    }
    assert sum(map(bool, messages.values())) > len(messages) / 2
    unclear = {
        key: message
        for key, message in messages.items()
        if message and f"-c {key[0]}=" not in message and "type: " not in message
    }
    assert unclear == {}
