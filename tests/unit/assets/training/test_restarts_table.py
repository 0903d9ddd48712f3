"""Each row of the table "what happened, what the job does" of docs/workloads.md has tests."""

import re

from training_cluster.paths import ROOT

JOB = "slow/assets/training/test_job.py"
RESTARTS = "slow/assets/training/test_restarts.py"
STOPS = "slow/assets/training/test_restarts_stops.py"
ENDS = "unit/assets/training/test_restarts.py"
HANGS = "slow/assets/training/test_job_hangs.py"
SAVES = "slow/assets/training/test_job_slow_saves.py"
SPOT = "unit/assets/training/trainkit/run/test_stopping_saves.py"
NETWORK = "slow/assets/training/test_job_network.py"
NCCL = "unit/assets/training/trainkit/test_nccl.py"
TRAINKIT = "unit/assets/training/trainkit/run"
RESUMING = "unit/assets/training/trainkit/test_resuming.py"
BEATS = f"{TRAINKIT}/test_heartbeat.py"
WORKLOADS = "slow/assets/training"
NOT_FINITE = "a_loss_that_is_not_finite_before_a_checkpoint_has_it"

TESTS = {
    "a rank died": [
        (RESTARTS, "test_a_killed_rank_and_the_job_starts_again_by_itself_and_goes_on"),
        (RESTARTS, "test_ranks_that_die_without_checkpoint_end_the_job"),
        (ENDS, "test_starts_without_a_checkpoint_have_a_limit"),
        (HANGS, "test_ranks_that_do_not_notice_a_dead_one_are_ended_and_the_run_goes_on"),
    ],
    "a node was lost": [
        (RESTARTS, "test_a_node_loss_before_a_checkpoint_restarts"),
    ],
    "no step for": [
        (HANGS, "test_a_stopped_rank_ends_the_job_with_stacks_and_the_run_goes_on"),
        (BEATS, "test_a_rank_that_is_elsewhere_than_the_others_is_named"),
        (BEATS, "test_the_limit_is_ten_usual_times_between_rows_where_these_are_longer"),
        (BEATS, "test_saves_and_the_end_may_take_an_hour_and_no_more"),
        (BEATS, "test_ranks_that_never_make_a_step_are_ended"),
    ],
    "EC2 takes a spot node": [
        (STOPS, "test_a_spot_notice_and_the_job_saves_and_starts_again"),
        (ENDS, "test_a_spot_notice_before_the_first_step_and_the_job_is_queued_again"),
        (SPOT, "test_a_spot_node_s_run_saves_more_often_from_its_eleventh_step_on_and_says_why"),
    ],
    "the loss or the gradients are not finite": [
        (f"{WORKLOADS}/test_gpt2.py", f"test_gpt2_ends_at_{NOT_FINITE}"),
        (f"{WORKLOADS}/test_bert_trainium.py", f"test_bert_ends_at_{NOT_FINITE}"),
        (f"{WORKLOADS}/test_gpt2_megatron.py", f"test_megatron_ends_at_{NOT_FINITE}"),
        (
            f"{WORKLOADS}/test_roberta.py",
            "test_it_ends_at_gradients_that_are_not_finite_before_a_checkpoint_has_them",
        ),
        (
            f"{WORKLOADS}/titan/test_titan.py",
            "test_a_run_that_diverges_ends_and_keeps_its_last_good_checkpoint",
        ),
        ("slow/ops/test_workload_template.py", f"test_it_ends_at_{NOT_FINITE}"),
    ],
    "time limit, `scancel`": [
        (STOPS, "test_cancelled_it_saves_and_says_how_to_go_on"),
        (SAVES, "test_a_save_of_more_than_30_s_survives_scancel_a_time_limit_and_a_requeue"),
    ],
    "time limit, with `REQUEUE_AT_TIME_LIMIT=1`": [
        (STOPS, "test_at_its_time_limit_it_is_requeued_if_asked_and_not_after_scancel"),
        (ENDS, "test_a_time_limit_without_checkpoint_ends_the_job"),
    ],
    "`scontrol requeue`": [
        (SAVES, "test_a_save_of_more_than_30_s_survives_scancel_a_time_limit_and_a_requeue")
    ],
    "the newest checkpoint has lost files": [
        (
            RESTARTS,
            "test_a_truncated_newest_checkpoint_and_a_hole_in_the_metrics_cost_two_steps_and_no_loss_differs",
        ),
        (
            f"{TRAINKIT}/test_checkpoints.py",
            "test_a_run_with_incomplete_checkpoints_only_ends_instead_of_beginning_anew",
        ),
        (RESTARTS, "test_changed_bytes_are_found_by_all_nodes"),
        (f"{TRAINKIT}/test_checkpoints.py", "test_a_run_with_changed_checkpoints_only_ends"),
    ],
    "settings differ from the checkpoint's": [
        (RESUMING, "test_each_changed_setting_is_one_line"),
        (RESUMING, "test_another_global_batch_is_refused_unless_given"),
        ("unit/assets/training/titan/test_titan.py", "test_a_run_keeps_its_rate_unless_given"),
        (f"{WORKLOADS}/test_gpt2.py", "test_settings_of_a_resume_replace_those_of_its_checkpoint"),
    ],
    "the disk is full": [(RESTARTS, "test_a_full_disk_at_a_save_is_said_and_with_space_the_run_goes_on")],
    "the preparation dies": [
        (JOB, "test_a_killed_preparation_fails_the_job_and_the_next_one_finishes_it"),
    ],
    "slurmctld or slurmd dies": [
        (RESTARTS, "test_a_killed_controller_that_starts_again_does_not_interrupt_the_training"),
        (RESTARTS, "test_a_killed_slurmd_that_starts_again_does_not_interrupt_the_training"),
    ],
    "NCCL sends over TCP": [
        (NETWORK, "test_a_strict_run_on_tcp_ends_at_its_first_step_and_keeps_its_checkpoint"),
        (NETWORK, "test_a_strict_run_whose_nccl_writes_nothing_ends_too"),
        (NCCL, "test_a_node_that_sends_over_tcp_is_named_where_it_has_efa"),
        (NCCL, "test_a_report_warns_of_it"),
    ],
    "rows of `metrics.jsonl`": [
        (
            RESTARTS,
            "test_a_truncated_newest_checkpoint_and_a_hole_in_the_metrics_cost_two_steps_and_no_loss_differs",
        ),
        (f"{TRAINKIT}/test_metrics.py", "test_a_reader_skips_damaged_rows_and_counts_them"),
    ],
}


def test_each_row_has_a_test_that_exists() -> None:
    page = (ROOT / "docs" / "workloads.md").read_text(encoding="utf-8")
    table = page.partition("| what happened | what the job does |")[2].partition("\n\n")[0]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()[2:]]
    assert len(rows) == len(TESTS), rows
    for row, (begin, tests) in zip(rows, TESTS.items(), strict=True):
        assert row.startswith(begin)
        assert tests
        for file, name in tests:
            text = (ROOT / "tests" / file).read_text(encoding="utf-8")
            assert re.search(rf"^def {name}\(", text, re.MULTILINE), (row, file, name)
