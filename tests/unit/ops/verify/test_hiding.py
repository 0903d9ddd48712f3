"""A report of `trainctl verify` identifies no account."""

from ops.verify.hiding import hide_ids


def test_ids_are_hidden_and_other_words_are_not() -> None:
    for text, shown in (
        ("account 111122223333 asks", "account (account) asks"),
        ("arn:aws-us-gov:iam::111122223333:role/x denied", "(ARN) denied"),
        ("i-0123456789abcdef0 of vpc-0a1b2c3d", "(id) of (id)"),
        ("node ip-10-0-1-23.ec2.internal at 10.0.1.23:22", "node (address) at (address):22"),
        ("2001:db8:0:1:2:3:4:5 in s3://bucket-name/datasets", "(address) in (bucket)"),
        (
            "from 2600:1f18:abcd:1200::5: fe80::1, ::1 and 2001:db8::/32",
            "from (address): (address), (address) and (address)/32",
        ),
        ("fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com@tcp:/abcd", "(address)@tcp:/abcd"),
        ("mine.s3.cn-north-1.amazonaws.com.cn timed out", "(address) timed out"),
        ("trainingcluster-storage-bucket83908e77-1a2b3c4d5e6f7 is full", "(bucket) is full"),
        ("key-0123456789abcdef0, tgw-0123456789abcdef0", "(id), (id)"),
        ("torch::jit at 01:19:36, std::move, rate 3:2", "torch::jit at 01:19:36, std::move, rate 3:2"),
        ("ask someone@example.com at https://a.b/c?d", "ask (mail) at (URL)"),
        ("AKIAIOSFODNN7EXAMPLE", "(masked)"),
        ("3.0.1 at 01:19:36: job 12 of p4d.24xlarge", "3.0.1 at 01:19:36: job 12 of p4d.24xlarge"),
    ):
        assert hide_ids(text) == shown
