"""Boards of jobs, their users and their GPUs."""

from tools.boards.panel import Board, Panel, one

# Metrics of a job's nodes: the job's labels from the nodes' own metric, which is many to one on shared nodes.
_OF_JOB = 'slurm_node_job_info{job=~"$job"} * on (node) group_left () '

JOBS = Board(
    "training-cluster-jobs",
    "Jobs and users",
    (
        Panel(
            "Running jobs",
            (("slurm_job_info", ""),),
            kind="table",
            about="Job, user, account, partition and name.",
        ),
        one("Nodes of running jobs, by user", "sum by (user) (slurm_job_nodes)", "{{user}}"),
        one("Jobs by user and state", "sum by (user, state) (slurm_jobs)", "{{user}} {{state}}"),
        one(
            "Longest wait of a pending job",
            "max by (partition, reason) (slurm_queue_wait_seconds) or vector(0)",
            "{{partition}} {{reason}}",
            "s",
        ),
        one("Wait before the start, of running jobs", "slurm_job_wait_seconds", "{{job}} {{user}}", "s"),
        one(
            "GPU use by job",
            "avg by (job, user) (slurm_node_job_info * on (node) group_left () "
            "avg by (node) (gpu_utilization_ratio))",
            "{{job}} {{user}}",
            "percentunit",
        ),
        one("Tokens a second", "training_tokens_per_second", "{{job}} {{user}} {{workload}}"),
        one("Loss", "training_loss", "{{job}} {{user}} {{workload}}"),
        one("Seconds a step", "training_step_seconds", "{{job}} {{user}}", "s"),
        one(
            "Part of a step that waits for data",
            "training_data_wait_seconds / training_step_seconds",
            "{{job}} {{user}}",
            "percentunit",
        ),
        one("MFU", "training_mfu_ratio", "{{job}} {{user}}", "percentunit"),
        one("Time since the newest step", "time() - training_row_seconds", "{{job}} {{user}}", "s"),
    ),
)

GPUS = Board(
    "training-cluster-gpus",
    "One job's GPUs",
    (
        one(
            "Slowest GPU clock of each node, against the job's median",
            f"{_OF_JOB} min by (node) (gpu_sm_clock_hertz) / on (job) group_left () quantile by (job) "
            f"(0.5, {_OF_JOB} min by (node) (gpu_sm_clock_hertz))",
            "{{node}}",
            "percentunit",
            "A straggler is below 80 %.",
        ),
        one(
            "GPU use",
            'gpu_utilization_ratio and on (node) slurm_node_job_info{job=~"$job"}',
            "{{node}} {{gpu}}",
            "percentunit",
        ),
        one(
            "SM clock",
            'gpu_sm_clock_hertz and on (node) slurm_node_job_info{job=~"$job"}',
            "{{node}} {{gpu}}",
            "hertz",
        ),
        one(
            "Power",
            'gpu_power_watts and on (node) slurm_node_job_info{job=~"$job"}',
            "{{node}} {{gpu}}",
            "watt",
        ),
        one(
            "Temperature",
            'gpu_temperature_celsius and on (node) slurm_node_job_info{job=~"$job"}',
            "{{node}} {{gpu}}",
            "celsius",
        ),
        one(
            "Memory in use",
            'gpu_memory_used_bytes and on (node) slurm_node_job_info{job=~"$job"}',
            "{{node}} {{gpu}}",
            "bytes",
        ),
        one(
            "Slowed clocks",
            'gpu_throttled == 1 and on (node) slurm_node_job_info{job=~"$job"}',
            "{{node}} {{gpu}} {{reason}}",
        ),
        one(
            "NVLink of each GPU",
            "sum by (node, gpu) (rate(gpu_nvlink_bytes_total[$__rate_interval])) "
            'and on (node) slurm_node_job_info{job=~"$job"}',
            "{{node}} {{gpu}}",
            "Bps",
        ),
        one(
            "NeuronCore use",
            'neuron_core_utilization_ratio and on (node) slurm_node_job_info{job=~"$job"}',
            "{{node}} {{core}}",
            "percentunit",
        ),
        one(
            "Processors in use",
            f"{_OF_JOB} sum by (node) "
            '(rate(host_cpu_seconds_total{mode!~"idle|iowait"}[$__rate_interval]))',
            "{{node}}",
        ),
        one("Seconds a step", 'training_step_seconds{job=~"$job"}', "{{job}}", "s"),
        one("Tokens a second", 'training_tokens_per_second{job=~"$job"}', "{{job}}"),
    ),
    of_one_job=True,
)
