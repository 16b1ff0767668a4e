"""What a federated algorithm is; the tutorial for writing one.

An algorithm is a frozen dataclass of its hyper-parameters. A round has five parts, and nothing else
crosses between server and clients:

    down = broadcast(state)          server   the vectors every sampled client is sent
    point = unpack(down, round)      client   what follows from ``down`` alone, the same for all clients
    local loop                       client   E steps on its own rows: fills the vectors it sends, ``up``,
                                              and updates the vectors it keeps, ``memory``
    mean = Σ_k weight_k up_k         engine   uploads are increments and are only ever averaged
    state = server_update(mean)      server

``estimate(state)`` is the only way from a state to a model. All vectors are flat (see ``layout``) and
have names, so that an engine can count, send and check them without knowing what they mean.

The local loop is a kernel of the record that ``plan`` returns: one plain function in the numba subset,
for one client, that can be laid beside the algorithm's box in its paper. It is compiled with the loss
and the penalty when both are compiled, and runs as it stands when one of them is plain NumPy.

    def local_loop(self, oracle, regulariser, client, down, memory, up): ...

The rows of ``down`` are the vectors of ``unpack`` in its order; those of ``memory`` (zero at first) and
``up`` are the ones that the class attributes name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Self

from unpooled._validation import is_number
from unpooled.kernels.arrays import Arrays, Float
from unpooled.kernels.compile import method
from unpooled.problem import BoundProblem

if TYPE_CHECKING:
    from unpooled.algorithms.curvature import Curvature

local_loop = method("local_loop")


@dataclass(frozen=True)
class State:
    """Where a run stands at the server: the number of rounds done and the named flat vectors."""

    round: int
    arrays: Arrays


class Algorithm(ABC):
    """The protocol; every algorithm of the library implements it."""

    uploads: ClassVar[tuple[str, ...]]  # what a client sends
    memory: ClassVar[tuple[str, ...]] = ()  # what a client keeps from round to round
    coordinatewise: ClassVar[bool] = False
    """Whether the local loop takes ``local_steps`` gradients and treats coordinates apart but for them and
    the penalty, ``unpack`` has a vector "w", and a coordinate at w = 0 whose gradient stays 0 is not moved.
    On sparse rows and with a penalty that has an ``entry`` the loop is then run on the features that a
    client's minibatches have, and on no others."""
    local_steps: int | None  # None while it is open

    def resolve(self, curvature: Curvature, rounds: int | None) -> tuple[Self, list[str]]:
        """This algorithm with every open hyper-parameter chosen, and sentences that say what was chosen."""
        return self, []

    def gentler(self, chosen: Self) -> tuple[Self, str] | None:
        """This algorithm with half the step that ``chosen``, its resolved form, has; and the number in words.

        ``simulate`` takes it where a run diverges. None where the user's own numbers decide the step.
        """
        return None

    def planned_rounds(self) -> int | None:
        """How many rounds the algorithm itself prescribes, if it does."""
        return None

    def check_not_averaged(self) -> None:
        """Refuse that uploads are not simply averaged, where the algorithm cannot do without."""
        return

    def problem_at(self, problem: BoundProblem, round: int) -> BoundProblem:
        """The problem that clients work on in this round; another one only in a homotopy in λ."""
        return problem

    @abstractmethod
    def init(self, problem: BoundProblem, w0: Float) -> State:
        """The state before the first round."""

    @abstractmethod
    def broadcast(self, problem: BoundProblem, state: State) -> Arrays:
        """The vectors sent to every sampled client."""

    def unpack(self, problem: BoundProblem, down: Arrays, round: int) -> Arrays:
        """What a client derives from ``down`` before its first step."""
        return down

    @abstractmethod
    def plan(self, problem: BoundProblem, round: int) -> Any:
        """The record with this round's numbers and the kernel ``local_loop``, of one type in all rounds."""

    @abstractmethod
    def server_update(self, problem: BoundProblem, state: State, mean: Arrays, participation: float) -> State:
        """The next state. ``participation`` · mean = Σ_k π_k up_k over the sampled clients."""

    @abstractmethod
    def estimate(self, problem: BoundProblem, state: State) -> Float:
        """The model."""

    def settings(self) -> dict[str, Any]:
        """The hyper-parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


def check_number(name: str, number: Any, least: float, strict: bool) -> None:
    """Refuse what is given and is not a finite number ≥ ``least`` (> where ``strict``)."""
    if number is None:
        return
    wanted = "a positive number" if strict else f"a number ≥ {least:g}"
    if not is_number(number) or not (least < number < inf if strict else least <= number < inf):
        raise ValueError(f"{name} must be {wanted}, got {number!r}")


def check_positive(**numbers: float | None) -> None:
    """Refuse what is given and is not a positive finite number."""
    for name, number in numbers.items():
        check_number(name, number, 0.0, strict=True)


def whole_steps(local_steps: Any) -> int:
    """The number of local steps as an int, refused where it is not a whole number ≥ 1."""
    if not is_number(local_steps) or not 1 <= local_steps < inf or int(local_steps) != local_steps:
        raise ValueError(f"local_steps must be a whole number ≥ 1, got {local_steps!r}")
    return int(local_steps)
