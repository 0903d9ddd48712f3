"""The keys of slurm.conf, read from the tables of Slurm's parser."""

from __future__ import annotations

import pytest

from tools.slurm_keys import read_keys

SOURCE = """
static int _parse_nodename(void **dest, slurm_parser_enum_t type,
    const char *key, char **leftover);
s_p_options_t slurm_conf_options[] = {
    {"AccountingStorageUser", S_P_STRING, _defunct_option},
    {"DefCPUPerGPU" , S_P_UINT64},
    {"Epilog", S_P_ARRAY},

    {"NodeName", S_P_ARRAY, _parse_nodename, _destroy_nodename},
    {"SlurmctldHost", S_P_ARRAY, _parse_slurmctld_host,
     _destroy_slurmctld_host},
    {NULL}
};

static int _parse_slurmctld_host(void **dest, char **leftover)
{
    static s_p_options_t _slurmctld_host_options[] = {
        {NULL}
    };
}

static int _parse_nodename(void **dest, slurm_parser_enum_t type,
    const char *key, char **leftover)
{
    static s_p_options_t _nodename_options[] = {
        {"CPUs", S_P_UINT16},
        {"Feature", S_P_STRING},
        {NULL}
    };
}
"""


def test_each_line_has_its_parsers_keys() -> None:
    assert read_keys(SOURCE) == {
        "slurm.conf": ["AccountingStorageUser", "DefCPUPerGPU", "Epilog", "NodeName", "SlurmctldHost"],
        "NodeName": ["CPUs", "Feature"],
        "SlurmctldHost": [],
    }


def test_a_parser_without_a_definition_is_an_error() -> None:
    with pytest.raises(ValueError, match="defines no _parse_slurmctld_host"):
        read_keys(SOURCE.replace("_parse_slurmctld_host(void", "_other(void"))
