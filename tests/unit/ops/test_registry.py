"""Words of `trainctl registry`: what is refused, and what the head node is asked for."""

from ops.registry import check, needs_no_password, script

ECR = "123456789012.dkr.ecr.us-east-1.amazonaws.com"


def test_the_head_node_is_asked_for_it() -> None:
    for words, asked in (
        (("login", "nvcr.io", None), "login nvcr.io"),
        (("login", "docker.io", "me"), "login docker.io me"),
        (("login", ECR, None), f"login {ECR}"),
        (("logout", "registry.example.com:5000", None), "logout registry.example.com:5000"),
        (("list", None, None), "list"),
    ):
        assert script(check(*words)) == f"bash /fsx/training/registry.sh {asked}"
    assert needs_no_password(ECR)
    assert needs_no_password("123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn")
    assert not needs_no_password("public.ecr.aws")
