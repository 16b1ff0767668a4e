"""The paper's experiments, each a TOML file beside this one."""

from unpooled.experiments.experiment import Experiment, available, read

__all__ = ["Experiment", "available", "read"]
