"""Sessions of functions' roles."""

from rehearsal.local_aws.rights.sessions import function_credentials, role_of

ROLE = "arn:aws:iam::123456789012:role/a/path/guard-role"


def test_a_function_signs_with_its_own_role() -> None:
    first = function_credentials({"FunctionName": "guard", "Role": ROLE})
    other = function_credentials({"FunctionName": "guard", "Role": f"{ROLE}-2"})
    assert role_of(first["AWS_ACCESS_KEY_ID"]) == "guard-role"
    assert role_of(other["AWS_ACCESS_KEY_ID"]) == "guard-role-2"
    assert first == function_credentials({"FunctionName": "guard", "Role": ROLE})


def test_access_keys_of_functions_cannot_be_computed() -> None:
    keys = {
        function_credentials({"FunctionName": f"f{number}", "Role": ROLE})["AWS_ACCESS_KEY_ID"][4:]
        for number in range(50)
    }
    assert len(keys) == 50
    assert all(len(key) == 16 for key in keys)
    assert role_of("AKIA") is None
