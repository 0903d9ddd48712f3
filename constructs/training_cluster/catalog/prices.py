"""Model of the list prices in cluster_configs/prices.yaml."""

import datetime

from pydantic import Field

from training_cluster.catalog.family import UNCONFIRMED, Strict


class Price(Strict):
    """A list price with its date and its source."""

    usd: float = Field(ge=0)
    date: datetime.date = Field(description="of the source")
    source: str

    @property
    def confirmed(self) -> bool:
        """True when a source that can be looked up states the price."""
        return UNCONFIRMED not in self.source


class Prices(Strict):
    """List prices of one region, in USD; each name ends in its unit."""

    region: str
    hours_per_month: int = Field(gt=0)
    nat_gateway_hour: Price
    nat_gateway_gb: Price
    public_ipv4_hour: Price
    interface_endpoint_hour: Price = Field(description="of one endpoint in one zone")
    load_balancer_hour: Price = Field(description="a Network Load Balancer, without what it carries")
    gp3_gb_month: Price
    snapshot_gb_month: Price = Field(description="of EBS, standard tier, by what is stored")
    fsx_persistent2_gb_month: dict[str, Price] = Field(description="by MB/s for each TiB")
    fsx_scratch2_gb_month: Price
    efs_gb_month: Price
    efs_mibps_month: Price = Field(description="provisioned throughput")
    s3_gb_month: Price
    cloudwatch_metric_month: Price = Field(description="of one custom metric")
    cloudwatch_1000_requests: Price = Field(description="PutMetricData")
    cloudwatch_alarm_metric_month: Price = Field(description="of each metric that an alarm reads")
    amp_10m_samples: Price = Field(description="ingested, the first two thousand million of a month")
    amp_10m_samples_beyond: Price = Field(description="the others")
    aurora_acu_hour: Price

    def lustre_gb_month(self, deployment_type: str, mbps_per_tib: int | str | None) -> Price | None:
        """Return the price of a Lustre file system as FSx describes it (SCRATCH_2, PERSISTENT_2).

        None when the catalog does not have it.
        """
        if deployment_type == "SCRATCH_2":
            return self.fsx_scratch2_gb_month
        if deployment_type == "PERSISTENT_2":
            return self.fsx_persistent2_gb_month.get(str(mbps_per_tib))
        return None
