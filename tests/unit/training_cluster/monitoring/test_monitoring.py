"""Mail of jobs: the topic, who gets which messages, and which values of job_emails are refused."""

import pytest

from tests.unit.training_cluster.monitoring.monitored import monitored
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings


def test_each_address_gets_the_mail_of_its_users() -> None:
    template = monitored(job_emails="ann=a@example.com,bob=a@example.com,team@example.com")
    subscriptions = [
        each["Properties"] for each in template.find_resources("AWS::SNS::Subscription").values()
    ]
    assert {each["Protocol"] for each in subscriptions} == {"email"}
    assert {each["Endpoint"]: each.get("FilterPolicy") for each in subscriptions} == {
        "a@example.com": {"user": ["ann", "bob"]},
        "team@example.com": None,
    }
    # Nobody may publish by the topic's own policy, and over TLS alone.
    (policy,) = template.find_resources("AWS::SNS::TopicPolicy").values()
    assert [each["Effect"] for each in policy["Properties"]["PolicyDocument"]["Statement"]] == ["Deny"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("ann", '"ann" is not ADDRESS or USER=ADDRESS'),
        ("=a@example.com", '"=a@example.com" is not ADDRESS or USER=ADDRESS'),
        ("Ann B=a@example.com", '"Ann B=a@example.com" is not ADDRESS or USER=ADDRESS'),
        ("ann=a@example", '"ann=a@example" is not ADDRESS or USER=ADDRESS'),
        ("https://hooks.example.com/x", "is not ADDRESS or USER=ADDRESS"),
        ("a@example.com,", "a word is empty"),
        ("a@example.com,a@example.com", '"a@example.com" is given twice'),
    ],
)
def test_a_wrong_address_is_refused(value: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match="ADDRESS or USER=ADDRESS, comma separated") as refused:
        read_settings({"job_emails": value})
    assert said in str(refused.value)
