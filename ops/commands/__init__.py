"""The subcommands of `trainctl`: options, help and output. Each imports its implementation when it runs."""
