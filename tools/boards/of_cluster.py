"""Boards of the cluster: its state, network, cost and health."""

from tools.boards.panel import Board, Panel, one

CLUSTER = Board(
    "training-cluster",
    "Cluster",
    (
        one("Nodes by state", "sum by (partition, state) (slurm_nodes)", "{{partition}} {{state}}"),
        one("Jobs by state", "sum by (state) (slurm_jobs)", "{{state}}"),
        one("GPU use", "avg by (partition) (gpu_utilization_ratio)", "{{partition}}", "percentunit"),
        one("Tokens a second, all jobs", "sum(training_tokens_per_second)", "tokens/s"),
        Panel(
            "Nodes that take no job",
            (("time() - slurm_node_out_since_seconds or vector(0)", ""),),
            unit="s",
            kind="table",
            about="With the reason from sinfo -R. A 0 without a node: all nodes take jobs.",
        ),
        Panel(
            "Alerts",
            (("max by (alertname, severity, job, user, node) (ALERTS) or vector(0)", ""),),
            kind="table",
        ),
        one(
            "Longest wait of a pending job",
            "max by (partition, reason) (slurm_queue_wait_seconds) or vector(0)",
            "{{partition}} {{reason}}",
            "s",
        ),
        one(
            "Shared file systems in use",
            "1 - storage_free_bytes / storage_size_bytes",
            "{{folder}}",
            "percentunit",
        ),
        one("slurmctld: scheduling", 'slurm_sdiag{figure=~".*_seconds"}', "{{figure}}", "s"),
        one("slurmctld: queues and threads", 'slurm_sdiag{figure!~".*_seconds"}', "{{figure}}"),
        one(
            "Head node: processors in use",
            'sum(rate(host_cpu_seconds_total{node="head", mode!~"idle|iowait"}[$__rate_interval])) '
            '/ sum(host_cpus{node="head"})',
            "head",
            "percentunit",
        ),
        one(
            "Head node: free memory",
            'node_memory_MemAvailable_bytes{node="head"} / node_memory_MemTotal_bytes{node="head"}',
            "head",
            "percentunit",
        ),
    ),
)

NETWORK = Board(
    "training-cluster-network",
    "Network",
    (
        one(
            "EFA: sent by each node",
            'sum by (node) (rate(efa_hw_counter_total{counter="tx_bytes"}[$__rate_interval]))',
            "{{node}}",
            "Bps",
        ),
        one(
            "EFA: received by each node",
            'sum by (node) (rate(efa_hw_counter_total{counter="rx_bytes"}[$__rate_interval]))',
            "{{node}}",
            "Bps",
        ),
        one(
            "EFA: repeated packets",
            'sum by (node) (rate(efa_hw_counter_total{counter="retrans_pkts"}[$__rate_interval]))',
            "{{node}}",
            "pps",
        ),
        one(
            "EFA: errors of single devices",
            "sum by (node, device, counter) (increase(efa_device_errors_total[1h]))",
            "{{node}} {{device}} {{counter}}",
        ),
        one(
            "NVLink of each node",
            "sum by (node, direction) (rate(gpu_nvlink_bytes_total[$__rate_interval]))",
            "{{node}} {{direction}}",
            "Bps",
        ),
        one(
            "NVLink errors",
            "sum by (node, gpu, kind) (increase(gpu_nvlink_errors_total[1h]))",
            "{{node}} {{gpu}} {{kind}}",
        ),
        one(
            "Network: sent (NCCL over TCP, S3, file systems)",
            "sum by (node) (rate(node_network_transmit_bytes_total[$__rate_interval]))",
            "{{node}}",
            "Bps",
        ),
        one(
            "Network: received",
            "sum by (node) (rate(node_network_receive_bytes_total[$__rate_interval]))",
            "{{node}}",
            "Bps",
        ),
        one(
            "Lustre: of each node",
            "sum by (node, direction) (rate(lustre_client_bytes_total[$__rate_interval]))",
            "{{node}} {{direction}}",
            "Bps",
        ),
        one(
            "Lustre: operations of each node",
            "sum by (node, operation) (rate(lustre_client_operations_total[$__rate_interval]))",
            "{{node}} {{operation}}",
        ),
    ),
)

COST = Board(
    "training-cluster-cost",
    "Cost",
    (
        Panel(
            "Spend of this month at list price, and the budget",
            (("max(cluster_spend_usd)", "spend"), ("max(cluster_budget_usd)", "budget")),
            "currencyUSD",
            about="On-demand prices of nodes only, not a bill: without spot, discounts, disks and traffic.",
        ),
        one(
            "USD an hour, by partition",
            "sum by (partition) (cluster_usd_per_hour)",
            "{{partition}}",
            "currencyUSD",
        ),
        one(
            "USD an hour, by user",
            "sum by (user) (slurm_job_nodes * on (partition) group_left () "
            "max by (partition) (cluster_node_usd_per_hour))",
            "{{user}}",
            "currencyUSD",
            "A node that two jobs share counts twice.",
        ),
        one(
            "USD an hour, of nodes without a job",
            'sum by (partition) (slurm_nodes{state=~"idle|powering_up|powering_down|down"}) * on (partition) '
            "max by (partition) (cluster_node_usd_per_hour)",
            "{{partition}}",
            "currencyUSD",
        ),
        one(
            "USD an hour, of GPUs that wait in a running job",
            "sum by (user) (slurm_node_job_info * on (node) group_left () "
            "(1 - avg by (node) (gpu_utilization_ratio)) * on (partition) group_left () "
            "max by (partition) (cluster_node_usd_per_hour))",
            "{{user}}",
            "currencyUSD",
        ),
        one(
            "Tokens for a USD",
            "sum by (job, user) (training_tokens_per_second) * 3600 / on (job) group_left () "
            "sum by (job) (slurm_job_nodes * on (partition) group_left () "
            "max by (partition) (cluster_node_usd_per_hour))",
            "{{job}} {{user}}",
        ),
    ),
)

HEALTH = Board(
    "training-cluster-health",
    "Node health",
    (
        Panel(
            "XID errors since boot",
            (("sum by (node, gpu, xid, class) (gpu_xid_errors_total)", ""),),
            kind="table",
            about="Class fatal: the health check drains the node. Class application: a faulty program.",
        ),
        one("GPUs whose NVLink fabric is not ready", "sum by (node) (1 - gpu_fabric_ready)", "{{node}}"),
        one("ECC errors", "sum by (node, gpu, kind) (gpu_ecc_errors_total) > 0", "{{node}} {{gpu}} {{kind}}"),
        one("Hottest GPU", "max by (node) (gpu_temperature_celsius)", "{{node}}", "celsius"),
        one(
            "GPUs slowed by heat or power",
            'sum by (node, reason) (gpu_throttled{reason!="software_power_cap"})',
            "{{node}} {{reason}}",
        ),
        one("GPUs of each node", "count by (node) (gpu_info)", "{{node}}"),
        one("Health checks limited by the brake", "max(slurm_braked_health_checks)", "checks"),
        one("Load of each node", "node_load1", "{{node}}"),
        one(
            "Free memory of each node",
            "node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes",
            "{{node}}",
            "percentunit",
        ),
        one(
            "Local disks in use",
            "1 - min by (node) (node_filesystem_avail_bytes / node_filesystem_size_bytes)",
            "{{node}}",
            "percentunit",
        ),
        one(
            "Local disks: written",
            "sum by (node) (rate(node_disk_written_bytes_total[$__rate_interval]))",
            "{{node}}",
            "Bps",
        ),
        one("Nodes that serve metrics", 'up{job=~"head|nodes"}', "{{node}}"),
        one("Readers that fail", "sum by (node, reader) (1 - metrics_reader_success)", "{{node}} {{reader}}"),
        one("Slowest reader of each node", "max by (node) (metrics_reader_seconds)", "{{node}}", "s"),
    ),
)
