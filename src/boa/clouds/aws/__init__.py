"""Nodes rented from AWS: one EC2 launch template per GPU type, one instant fleet per node."""

from boa.clouds.aws.cloud import AwsCloud

__all__ = ["AwsCloud"]
