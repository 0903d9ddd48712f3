"""A recording of the provider's work, as it is added up, written and read."""

from __future__ import annotations

from rehearsal.recording.recording import Recording


def test_recordings_add_up_and_a_written_one_is_read_with_calls_and_types() -> None:
    recording = Recording(calls={"library ec2 DescribeVpcs -"}, types={"AWS::EC2::VPC": {"CidrBlock"}})
    more = {"AWS::EC2::VPC": {"CidrBlock", "Tags"}, "AWS::EC2::EIP": set[str]()}
    recording.add(Recording(calls={"record.py ssm PutParameter Name"}, types=more))
    log = recording.dump()
    assert log.splitlines() == [
        "call library ec2 DescribeVpcs -",
        "call record.py ssm PutParameter Name",
        "type AWS::EC2::EIP",
        "type AWS::EC2::VPC CidrBlock,Tags",
    ]
    assert Recording.parse(log) == recording
