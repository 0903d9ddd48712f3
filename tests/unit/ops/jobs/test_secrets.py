"""Secrets on the command line of a job."""

import pytest

from ops.jobs.request import read_settings
from ops.jobs.secrets import refuse_secret_arguments
from ops.usage import UsageError

TOKEN = "hf_abcdefghijklmnopqrst0123456789"


def test_a_secret_as_value_is_refused() -> None:
    for pair in (
        "HF_TOKEN=x",
        "WANDB_API_KEY=0f9e8d7c",
        "WANDB_APIKEY=0f9e8d7c",
        "PGPASSWORD=hunter2",
        "AWS_SECRET_ACCESS_KEY=a/b",
        "db_password=hunter2hunter2",
        "HF_TOKEN_2=x",
        "DB_PWD=hunter2",
        "AZURE=AccountName=a;AccountKey=0f9e8d7c6b5a==",
        "SAS=sv=2024&sig=0f9e8d7c6b5a",
        "TOKEN=0f9e8d7c6b5a4f3e2d1c",
        f"PLAIN={TOKEN}",
        "MLFLOW_TRACKING_URI=https://me:hunter2hunter2@host",
        "HOOK=https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXX",
    ):
        for option in ("--env", "--set"):
            with pytest.raises(UsageError, match=r"looks like a secret[^$]*trainctl secret set") as refusal:
                read_settings([pair], run=None, option=option)
            assert pair.partition("=")[2] not in str(refusal.value).split()
    for pair in (
        "HF_TOKEN=file:.training-cluster/HF_TOKEN",
        "HF_TOKEN=secret:training/hf",
        "HF_TOKEN=",
        "GOOGLE_APPLICATION_CREDENTIALS=/home/alice/key.json",
        "TOKENIZERS_PARALLELISM=false",
        "HF_HUB_DISABLE_IMPLICIT_TOKEN=1",
        "USE_AUTH=yes",
        "MAX_TOKENS=a",
        "MOE_TOKEN_DISPATCHER_TYPE=alltoall",
        "TOKEN_DROPOUT=0.1",
        "DROP_TOKEN=-1.5e12",
        "PAD_TOKEN=<|reserved_special_token_12|>",
        "TEXT_KEY=text",
        "SINGLE_PASS=fused",
        "MONKEY=x",
        "HF_TOKEN_PATH=/scratch/t",
        "OLDPWD=/home/ubuntu",
        "RUN_NAME=hf_llama_3_8b_finetune",
        "RUN_NAME=sk-learn-baseline-run-01",
        "WANDB_NOTES=basic reproduction-of-the-paper",
        "MLFLOW_TRACKING_URI=https://mlflow.example.com",
    ):
        assert read_settings([pair], run=None)


def test_a_secret_argument_is_refused() -> None:
    for passes in (
        "--size 8B --run hf_llama_3_8b_finetune",
        "--api-key /fsx/keys/mine",
        "--use-api-key --seed=12345",
    ):
        refuse_secret_arguments(passes.split())
    for refused in (f"--token={TOKEN}", "--api-key abcdefgh12345", "--db-password hunter22"):
        with pytest.raises(UsageError, match="an argument of the workload"):
            refuse_secret_arguments(refused.split())
