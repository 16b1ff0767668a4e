"""Smooth losses; ``unpooled.losses.base`` tells how to write one."""

from unpooled.losses.base import LinearLoss
from unpooled.losses.huber import Huber
from unpooled.losses.logistic import Logistic
from unpooled.losses.poisson import Poisson
from unpooled.losses.softmax import Softmax
from unpooled.losses.squared import Squared

__all__ = ["Huber", "LinearLoss", "Logistic", "Poisson", "Softmax", "Squared"]
