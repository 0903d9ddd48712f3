"""Mail of jobs: the topic, who gets which messages, and which values of job_emails are refused."""

import pytest

from tests.unit.training_cluster.monitoring.monitored import monitored
from training_cluster.rules.context import read_settings


def test_each_address_gets_the_mail_of_its_users_and_one_without_a_user_that_of_all() -> None:
    template = monitored(job_emails="ann=a@example.com,bob=a@example.com,team@example.com")
    ((topic, found),) = template.find_resources("AWS::SNS::Topic").items()
    assert found["Properties"]["TopicName"] == "TrainingCluster_training_Jobs"
    subscriptions = [
        each["Properties"] for each in template.find_resources("AWS::SNS::Subscription").values()
    ]
    assert {each["Protocol"] for each in subscriptions} == {"email"}
    assert all(each["TopicArn"] == {"Ref": topic} for each in subscriptions)
    assert {each["Endpoint"]: each.get("FilterPolicy") for each in subscriptions} == {
        "a@example.com": {"user": ["ann", "bob"]},
        "team@example.com": None,
    }


def test_nobody_may_publish_by_the_topics_own_policy_and_only_over_tls() -> None:
    (policy,) = monitored(job_emails="a@example.com").find_resources("AWS::SNS::TopicPolicy").values()
    (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Condition"]) == (
        "Deny",
        {"Bool": {"aws:SecureTransport": "false"}},
    )


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("ann", '"ann" is not ADDRESS or USER=ADDRESS'),
        ("ann=", '"ann=" is not ADDRESS or USER=ADDRESS'),
        ("=a@example.com", '"=a@example.com" is not ADDRESS or USER=ADDRESS'),
        ("Ann B=a@example.com", '"Ann B=a@example.com" is not ADDRESS or USER=ADDRESS'),
        ("ann=a@example", '"ann=a@example" is not ADDRESS or USER=ADDRESS'),
        ("ann=a b@example.com", '"ann=a b@example.com" is not ADDRESS or USER=ADDRESS'),
        ("https://hooks.example.com/x", "is not ADDRESS or USER=ADDRESS"),
        ("a@example.com,", "a word is empty"),
        ("", "a word is empty"),
        ("a@example.com,a@example.com", '"a@example.com" is given twice'),
    ],
)
def test_a_wrong_address_is_one_message_with_what_is_allowed(value: str, said: str) -> None:
    with pytest.raises(Exception, match="job_emails") as refused:
        read_settings({"job_emails": value})
    assert said in str(refused.value)
    assert "ADDRESS or USER=ADDRESS, comma separated" in str(refused.value)
