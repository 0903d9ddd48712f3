"""Words of `trainctl registry`: what is refused, and what the head node is asked for."""

import pytest

from ops.registry import check, needs_no_password, script
from ops.usage import UsageError

ECR = "123456789012.dkr.ecr.us-east-1.amazonaws.com"


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (("login", "nvcr.io", None), "login nvcr.io"),
        (("login", "docker.io", "me"), "login docker.io me"),
        (("login", ECR, None), f"login {ECR}"),
        (("logout", "registry.example.com:5000", None), "logout registry.example.com:5000"),
        (("list", None, None), "list"),
    ],
)
def test_the_head_node_is_asked_for_it(words: tuple[str, str | None, str | None], asked: str) -> None:
    assert script(check(*words)) == f"bash /fsx/training/registry.sh {asked}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("logn", "nvcr.io", None), 'no such action. Did you mean "login"?'),
        (("login", None, None), "no host is given"),
        (("login", "https://nvcr.io", None), "'https://nvcr.io' is not a host name"),
        (("login", "nvcr", None), "'nvcr' is not a host name"),
        (("login", "docker.io", None), "--user is missing"),
        (("login", "docker.io", "a b; id"), "--user 'a b; id': no name of a user"),
        (("login", "nvcr.io", "me"), "--user: registry login nvcr.io takes none."),
        (("logout", "docker.io", "me"), "--user: registry logout docker.io takes none."),
        (("list", "docker.io", None), "it lists all registries"),
    ],
)
def test_wrong_words_are_one_message(words: tuple[str, str | None, str | None], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        check(*words)
    assert said in str(refused.value)


def test_amazons_registries_need_no_password() -> None:
    assert needs_no_password(ECR)
    assert needs_no_password("123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn")
    assert not needs_no_password("public.ecr.aws")
