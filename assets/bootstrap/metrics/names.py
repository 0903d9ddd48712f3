"""Names of all metrics in the text files that node_exporter serves, each with its type and its explanation.

Boards and rules use these names and node_exporter's, slurmctld's sdiag included; a test compares them.
"""

from __future__ import annotations

GAUGE, COUNTER = "gauge", "counter"

NAMES = {
    # Every program
    "metrics_reader_success": (
        GAUGE,
        "1 if a reader of this node's metrics succeeded at its last run, else 0.",
    ),
    "metrics_reader_seconds": (GAUGE, "Seconds that a reader of this node's metrics took at its last run."),
    # gpus.py, from nvidia-smi
    "gpu_info": (GAUGE, "Always 1; the labels have model, driver and PCI address of a GPU."),
    "gpu_utilization_ratio": (GAUGE, "Share of time in which a kernel ran on the GPU."),
    "gpu_memory_used_bytes": (GAUGE, "Memory in use on the GPU."),
    "gpu_memory_size_bytes": (GAUGE, "Memory of the GPU."),
    "gpu_power_watts": (GAUGE, "Power that the GPU draws."),
    "gpu_power_limit_watts": (GAUGE, "Power limit that the driver enforces."),
    "gpu_temperature_celsius": (GAUGE, "Temperature of the GPU."),
    "gpu_memory_temperature_celsius": (GAUGE, "Temperature of the GPU's memory."),
    "gpu_sm_clock_hertz": (GAUGE, "Clock of the streaming multiprocessors."),
    "gpu_sm_clock_max_hertz": (GAUGE, "Highest clock of the streaming multiprocessors."),
    "gpu_throttled": (GAUGE, "1 while the reason in the label lowers the GPU's clocks, else 0."),
    "gpu_ecc_errors_total": (COUNTER, "ECC errors since the driver was loaded, by kind."),
    "gpu_fabric_ready": (GAUGE, "1 if the GPU has joined the NVLink fabric with success, else 0."),
    "gpu_nvlink_bytes_total": (COUNTER, "Data over all NVLinks of the GPU, by direction."),
    "gpu_nvlink_errors_total": (COUNTER, "Errors of all NVLinks of the GPU, by kind."),
    "gpu_xid_errors_total": (COUNTER, "XID errors that the driver logged since boot, by code and class."),
    # neuron.py, from neuron-monitor
    "neuron_core_utilization_ratio": (GAUGE, "Share of time in which the NeuronCore was busy."),
    "neuron_memory_used_bytes": (GAUGE, "Memory that jobs use on all Neuron devices of the node."),
    "neuron_memory_size_bytes": (GAUGE, "Memory of all Neuron devices of the node."),
    # compute_node.py, from /sys/class/infiniband/*/ports/*/hw_counters
    "efa_hw_counter_total": (COUNTER, "Hardware counter of all EFA devices, by EFA's own name."),
    "efa_device_errors_total": (
        COUNTER,
        "Errors of one EFA device, by EFA's own name; none without an error.",
    ),
    # host.py
    "host_cpu_seconds_total": (COUNTER, "Seconds of all processors together, by mode."),
    "host_cpus": (GAUGE, "Processors of the machine."),
    # compute_node.py, from lctl get_param llite.*.stats
    "lustre_client_bytes_total": (COUNTER, "Bytes that this node read from or wrote to Lustre."),
    "lustre_client_operations_total": (COUNTER, "Operations of this node on Lustre, by kind."),
    # Prolog and epilogue
    "slurm_node_job_info": (GAUGE, "1 while the job in the labels has this node."),
    # slurm_nodes.py, from sinfo
    "slurm_nodes": (GAUGE, "Nodes of a partition by state."),
    "slurm_node_state": (GAUGE, "1 for the state of each node that is not powered down."),
    "slurm_node_out_since_seconds": (GAUGE, "Time since which a node takes no job, with the reason."),
    "slurm_braked_health_checks": (GAUGE, "Health checks of the last hour that were braked."),
    # slurm_jobs.py, from squeue
    "slurm_jobs": (GAUGE, "Jobs by state, user, account and partition."),
    "slurm_job_info": (GAUGE, "Always 1; the labels describe a running job."),
    "slurm_job_nodes": (GAUGE, "Nodes of a running job."),
    "slurm_job_start_seconds": (GAUGE, "Time at which a running job started."),
    "slurm_job_wait_seconds": (GAUGE, "Seconds from a running job's submission to its start."),
    "slurm_queue_wait_seconds": (
        GAUGE,
        "Seconds that the oldest pending job of a partition has waited, by reason.",
    ),
    # slurm_jobs.py, from sdiag
    "slurm_sdiag": (GAUGE, "Figure of slurmctld, by name, as sdiag prints it; times in seconds."),
    # head_node.py, from stat
    "storage_size_bytes": (GAUGE, "Size of a shared file system."),
    "storage_free_bytes": (GAUGE, "Free space of a shared file system."),
    "storage_files": (GAUGE, "Files that a shared file system can hold."),
    "storage_files_free": (GAUGE, "Files that a shared file system can hold in addition."),
    # spend.py
    "cluster_usd_per_hour": (GAUGE, "List price of the nodes that run, USD an hour, by partition."),
    "cluster_node_usd_per_hour": (GAUGE, "List price of a partition's most expensive node, USD an hour."),
    "cluster_spend_usd": (GAUGE, "List price of the nodes that ran in this month, USD."),
    "cluster_budget_usd": (GAUGE, "Budget of a month, USD (budget_usd)."),
    # training.py, from the newest rows of metrics.jsonl
    "training_step": (GAUGE, "Step of the newest row of a run."),
    "training_loss": (GAUGE, "Loss of the newest row of a run."),
    "training_loss_is_finite": (GAUGE, "1 if the newest row has a finite loss, else 0."),
    "training_gradient_norm": (GAUGE, "Norm of the gradients in the newest row of a run, before clipping."),
    "training_tokens_per_second": (GAUGE, "Tokens a second of all ranks of a run."),
    "training_mfu_ratio": (GAUGE, "Model FLOPs utilization of a run."),
    "training_step_seconds": (GAUGE, "Seconds of the newest step."),
    "training_data_wait_seconds": (GAUGE, "Part of the newest step that rank 0 waited for data."),
    "training_memory_bytes": (GAUGE, "Peak of a rank's accelerator memory."),
    "training_world_size": (GAUGE, "Ranks of a run."),
    "training_row_seconds": (GAUGE, "Time of the newest row of a run."),
    "training_row_interval_seconds": (GAUGE, "Median of the times between the newest rows of a run."),
}
