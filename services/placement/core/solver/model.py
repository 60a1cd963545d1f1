"""The CP-SAT model of a contended round: exactly `objective.score`, over `places.layout`.

Per job and place an integer number of workers (a bundle: of nodes); a gang starts with at least
its least workers or not at all. Two capacities hold at every node: what is free now carries the
starts, and that with what stopping victims give back carries the claims as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ortools.sat.python import cp_model

from services.placement.core.pool.shape import GPU, Slot
from services.placement.core.solver.instance import GangRequest, Instance, NodeClass, RoundPlan
from services.placement.core.solver.objective import (
    BALANCE,
    FRAGMENT,
    NodeRemainder,
    at_speed,
    fragments,
    node_unit,
    rack_unit,
    room,
)
from services.placement.core.solver.places import (
    Place,
    bins_of,
    gpus_of,
    workers_later,
    workers_now,
)

Var = Any
"""A variable or a linear expression of CP-SAT; the library has no types."""
Sum = list[tuple[Var, int]]


@dataclass(slots=True)
class GangVariables:
    """The variables of one gang that would start (or move) now."""

    request: GangRequest
    begins: Var
    workers: dict[int, Var] = field(default_factory=dict)
    """Place -> workers; in a bundle -> nodes."""
    per: dict[int, int] = field(default_factory=dict)
    """Place -> workers that one unit of its number stands for."""
    bins: dict[tuple[int, int], Var] = field(default_factory=dict)
    """Shares: (place, GPU of the node by its place in `gpus_of`) -> workers."""


@dataclass(slots=True)
class Load:
    """What may be taken of one place."""

    gpus: Sum = field(default_factory=list)
    cpu: Sum = field(default_factory=list)
    mem: Sum = field(default_factory=list)
    opened: list[Var] = field(default_factory=list)


class Model:
    """Built once per instance; `solve.py` runs it and reads the plan back."""

    def __init__(self, instance: Instance, places: list[Place]) -> None:
        self.instance = instance
        self.places = places
        self.cp = cp_model.CpModel()
        self.gain: Sum = []
        self.constant = 0
        self.now = [Load() for _ in places]
        self.later = [Load() for _ in places]
        self.shares: dict[tuple[int, int], Sum] = {}
        shares = (request.max_workers for request in instance.requests if request.is_share)
        self.share_workers = sum(shares)
        """So many GPUs at most are opened on one node."""
        self.bundle_units: dict[int, list[Var]] = {}
        self.bundle_later: dict[int, list[Var]] = {}
        self.by_class: dict[int, list[int]] = {}
        for number, place in enumerate(places):
            self.by_class.setdefault(place.cls, []).append(number)
        self.gangs = [self.starter(request) for request in instance.requests]
        self.stops = [self.bool() for _ in instance.victims]
        self.reservations = {
            index: self.reservation_gang(request)
            for index, request in enumerate(instance.requests)
            if request.victims
        }
        self.migrants = [self.migrant(index) for index in range(len(instance.victims))]
        self.entitle()
        self.same_shapes()
        self.share_bins()
        for number in range(len(places)):
            self.capacity(number)
        self.balance_of = Balance(self)
        for number in range(len(places)):
            self.tidy(number)
        self.in_order()
        self.balance_of.close()
        self.cp.maximize(total(self.gain) + self.constant)

    # ---- small tools ------------------------------------------------------------------------

    def bool(self) -> Var:
        return self.cp.new_bool_var("")

    def upto(self, most: int) -> Var:
        return self.bool() if most == 1 else self.cp.new_int_var(0, most, "")

    def cls(self, number: int) -> NodeClass:
        return self.instance.classes[self.places[number].cls]

    # ---- who starts, claims, stops ------------------------------------------------------------

    def starter(self, request: GangRequest) -> GangVariables:
        gang = GangVariables(request, self.bool())
        if not request.victims:
            self.spread(gang)
        if not gang.workers:
            self.cp.add(gang.begins == 0)
            return gang
        if request.must_start:
            self.cp.add(gang.begins == 1)
        self.value(gang)
        self.compact(gang)
        return gang

    def migrant(self, index: int) -> GangVariables:
        victim = self.instance.victims[index]
        gang = GangVariables(victim.request, self.bool())
        self.spread(gang)
        self.gain.append((self.stops[index], -victim.price))
        self.gain.append((gang.begins, victim.price - victim.move_price))
        self.cp.add(gang.begins <= self.stops[index] if gang.workers else gang.begins == 0)
        return gang

    def spread(self, gang: GangVariables) -> None:
        """Workers by place, and all of the gang or none."""
        request = gang.request
        for index in request.classes:
            per_node = workers_now(self.instance.classes[index], request)
            for number in self.by_class.get(index, ()) if per_node else ():
                self.put(gang, number, per_node)
        if gang.workers:
            workers = total((var, gang.per[number]) for number, var in gang.workers.items())
            self.cp.add(workers >= request.min_workers * gang.begins)
            self.cp.add(workers <= request.max_workers * gang.begins)

    def put(self, gang: GangVariables, number: int, per_node: int) -> None:
        request, place, load = gang.request, self.places[number], self.now[number]
        if place.is_single:
            var, per = self.upto(per_node), 1
        elif request.is_share or not request.gpus:
            return
        else:
            var, per = self.upto(min(place.count, request.max_workers // per_node)), per_node
            self.bundle_units.setdefault(number, []).append(var)
        gang.workers[number], gang.per[number] = var, per
        if place.is_single:
            load.cpu.append((var, request.cpu_milli))
            load.mem.append((var, request.mem_mib))
            if request.is_share:
                self.put_share(gang, number, var)
            elif request.gpus:
                load.gpus.append((var, request.gpus))

    def put_share(self, gang: GangVariables, number: int, workers: Var) -> None:
        free = bins_of(self.cls(number), self.share_workers)
        for at, milli in enumerate(free):
            most = min(milli // gang.request.milli, gang.request.max_workers)
            if most:
                var = gang.bins[number, at] = self.upto(most)
                self.shares.setdefault((number, at), []).append((var, gang.request.milli))
        here = [var for (place, _), var in gang.bins.items() if place == number]
        self.cp.add(sum(here) == workers)

    def value(self, gang: GangVariables) -> None:
        """A gang runs at its slowest node's speed: which level that is, is chosen with it."""
        request = gang.request
        speed_of = dict(zip(request.classes, request.speeds, strict=True))
        speeds = {number: speed_of[self.places[number].cls] for number in gang.workers}
        levels = sorted(set(speeds.values()), reverse=True)
        if len(levels) == 1:
            self.gain.append((gang.begins, at_speed(request.value, levels[0])))
        else:
            chosen = {level: self.bool() for level in levels}
            self.cp.add(sum(chosen.values()) == gang.begins)
            self.gain += [(var, at_speed(request.value, level)) for level, var in chosen.items()]
            for number, var in gang.workers.items():
                allowed = [chosen[level] for level in levels if level <= speeds[number]]
                self.cp.add(var <= self.most(gang, number) * sum(allowed))
        if request.extra:
            self.gain += [(v, request.extra * gang.per[n]) for n, v in gang.workers.items()]
            self.gain.append((gang.begins, -request.extra * request.min_workers))

    def most(self, gang: GangVariables, number: int) -> int:
        place = self.places[number]
        per_node = workers_now(self.cls(number), gang.request)
        return per_node if place.is_single else place.count

    def compact(self, gang: GangVariables) -> None:
        """Few nodes and few racks, for a gang that could use several."""
        request = gang.request
        if request.max_workers == 1:
            return
        cost = node_unit(request)
        used: dict[int, Var] = {}
        for number, var in gang.workers.items():
            used[number] = self.indicator(gang, number, var)
            units = used[number] if self.places[number].is_single else var
            self.gain.append((units, -cost))
        self.gain.append((gang.begins, cost))
        racks: dict[int, list[Var]] = {}
        for number, flag in used.items():
            racks.setdefault(self.cls(number).rack, []).append(flag)
        if len(racks) > 1:
            self.few_racks(gang, racks)

    def few_racks(self, gang: GangVariables, racks: dict[int, list[Var]]) -> None:
        cost = rack_unit(self.instance, gang.request)
        for flags in racks.values():
            rack = self.bool()
            for flag in flags:
                self.cp.add_implication(flag, rack)
            self.gain.append((rack, -cost))
        self.gain.append((gang.begins, cost))

    def indicator(self, gang: GangVariables, number: int, var: Var) -> Var:
        most = self.most(gang, number)
        if most == 1:
            return var
        flag = self.bool()
        self.cp.add(var <= most * flag)
        return flag

    def reservation_gang(self, request: GangRequest) -> GangVariables:
        """A gang on what is free now and what victims give back; it starts when they are gone."""
        gang = GangVariables(request, self.bool())
        self.gain.append((gang.begins, request.value))
        for index in request.classes:
            cls = self.instance.classes[index]
            per_node = workers_later(cls, request)
            for number in self.by_class.get(index, ()) if per_node else ():
                self.put_later(gang, number, per_node)
        workers = total((var, gang.per[number]) for number, var in gang.workers.items())
        self.cp.add(workers == request.min_workers * gang.begins)
        return gang

    def put_later(self, gang: GangVariables, number: int, per_node: int) -> None:
        place, request, load = self.places[number], gang.request, self.later[number]
        if place.is_single:
            var, per = self.upto(per_node), 1
            load.gpus.append((var, request.gpus))
            load.cpu.append((var, request.cpu_milli))
            load.mem.append((var, request.mem_mib))
        else:
            var, per = self.upto(min(place.count, request.min_workers // per_node or 1)), per_node
            self.bundle_later.setdefault(number, []).append(var)
            for share in self.cls(number).victim_shares:
                self.cp.add(var <= place.count * self.stops[share.victim])
        gang.workers[number], gang.per[number] = var, per

    def entitle(self) -> None:
        """A victim stops only for a claim that may ask for it; who has a claim does not start."""
        candidate: dict[int, list[Var]] = {}
        for index, reservation in self.reservations.items():
            self.cp.add_at_most_one(reservation.begins, self.gangs[index].begins)
            for victim in reservation.request.victims:
                candidate.setdefault(victim, []).append(reservation.begins)
        for victim, stop in enumerate(self.stops):
            self.cp.add(stop <= sum(candidate.get(victim, [])))

    def same_shapes(self) -> None:
        """Of jobs that ask for the same the first in line goes first: no value is lost by it."""
        last: dict[tuple[object, ...], GangVariables] = {}
        for gang in self.gangs:
            request = gang.request
            if request.victims:
                continue
            key = (
                *need_of(request),
                request.min_workers,
                request.max_workers,
                request.classes,
                request.speeds,
            )
            if key in last and gang.request.value <= last[key].request.value:
                self.cp.add_implication(gang.begins, last[key].begins)
            last[key] = gang

    # ---- what nodes have ----------------------------------------------------------------------

    def share_bins(self) -> None:
        """A GPU that nobody used is opened by a share, and counts as one whole GPU less."""
        for (number, at), taken in self.shares.items():
            partly = self.cls(number).partial
            if at < len(partly):
                self.cp.add(total(taken) <= partly[at])
                continue
            opened = self.bool()
            self.cp.add(total(taken) <= GPU * opened)
            self.cp.add(sum(var for var, _ in taken) >= opened)
            self.now[number].opened.append(opened)
            self.now[number].gpus.append((opened, 1))
            self.gain.append((opened, -FRAGMENT))

    def capacity(self, number: int) -> None:
        place, cls = self.places[number], self.cls(number)
        if not place.is_single:
            now, later = self.bundle_units.get(number, []), self.bundle_later.get(number, [])
            if now or later:
                self.cp.add(sum(now) + sum(later) <= place.count)
            return
        now_, later_ = self.now[number], self.later[number]
        self.bound(now_.gpus, cls.whole)
        self.bound(now_.cpu, cls.cpu_milli)
        self.bound(now_.mem, cls.mem_mib)
        if later_.gpus:
            back = [(self.stops[share.victim], share) for share in cls.victim_shares]
            whole = [(stop, -share.whole) for stop, share in back]
            cpu = [(stop, -share.cpu_milli) for stop, share in back]
            mem = [(stop, -share.mem_mib) for stop, share in back]
            self.bound(now_.gpus + later_.gpus + whole, cls.whole)
            self.bound(now_.cpu + later_.cpu + cpu, cls.cpu_milli)
            self.bound(now_.mem + later_.mem + mem, cls.mem_mib)

    def bound(self, taken: Sum, most: int) -> None:
        terms = [(var, need) for var, need in taken if need]
        if terms:
            self.cp.add(total(terms) <= most)

    def tidy(self, number: int) -> None:
        if self.places[number].is_single:
            self.tidy_single(number)
        else:
            self.tidy_bundle(number)

    def tidy_single(self, number: int) -> None:
        cls, load = self.cls(number), self.now[number]
        if not load.gpus:
            self.constant += self.worth(cls, cls.whole, cls.cpu_milli, cls.mem_mib)
            if load.cpu:
                self.room_flag(cls, load)
                self.constant -= room(self.instance, free_of(cls))
            self.balance_of.constant(cls.whole)
            return
        used = total(load.gpus)
        some_left = self.bool()
        self.cp.add(cls.whole - used <= cls.whole * some_left)
        if cls.whole < cls.gpus:
            self.gain.append((some_left, -FRAGMENT))
        else:
            partly, touched = self.bool(), self.bool()
            self.cp.add(used <= cls.whole * touched)
            self.cp.add(partly >= some_left + touched - 1)
            self.gain.append((partly, -FRAGMENT))
        self.room_flag(cls, load)
        self.balance_of.expression(cls.whole - used)

    def room_flag(self, cls: NodeClass, load: Load) -> None:
        need, worth = self.instance.next_worker, room(self.instance, free_of(cls))
        if not worth:
            return
        flag = self.bool()
        self.cp.add(cls.whole - total(load.gpus) >= need.gpus * flag)
        if need.cpu_milli and load.cpu:
            self.cp.add(cls.cpu_milli - total(load.cpu) >= need.cpu_milli * flag)
        if need.mem_mib and load.mem:
            self.cp.add(cls.mem_mib - total(load.mem) >= need.mem_mib * flag)
        self.gain.append((flag, worth))

    def tidy_bundle(self, number: int) -> None:
        cls, place = self.cls(number), self.places[number]
        untouched = self.worth(cls, cls.whole, cls.cpu_milli, cls.mem_mib)
        self.constant += untouched * place.count
        units: list[Var] = []
        by_left: dict[int, list[Var]] = {}
        for gang in self.gangs + self.migrants:
            if number in gang.workers:
                var, workers, request = gang.workers[number], gang.per[number], gang.request
                whole = cls.whole - workers * request.gpus
                cpu = cls.cpu_milli - workers * request.cpu_milli
                mem = cls.mem_mib - workers * request.mem_mib
                self.gain.append((var, self.worth(cls, whole, cpu, mem) - untouched))
                by_left.setdefault(whole, []).append(var)
                units.append(var)
        for whole, some in by_left.items():
            self.balance_of.some(some, place.count, whole)
        self.balance_of.rest(units, place.count, cls.whole)

    def worth(self, cls: NodeClass, whole: int, cpu: int, mem: int) -> int:
        left = NodeRemainder(cls.gpus, whole, 0, cpu, mem)
        return room(self.instance, left) - fragments(left)

    def in_order(self) -> None:
        """Nodes that are alike are used in one order; the plan that is the hint obeys it."""
        for numbers in self.by_class.values():
            alike = [n for n in numbers if self.places[n].is_single and self.now[n].gpus]
            for one, other in zip(alike, alike[1:], strict=False):
                self.cp.add(total(self.now[one].gpus) >= total(self.now[other].gpus))

    # ---- the plan to start from -----------------------------------------------------------------

    def hint(self, plan: RoundPlan) -> None:
        """Where the search begins."""
        Hint(self).give(plan)


class Balance:
    """The most and the fewest whole GPUs that a node has left."""

    def __init__(self, model: Model) -> None:
        self.cp = model.cp
        self.model = model
        self.highest = max((cls.gpus for cls in model.instance.classes), default=0)
        self.most = self.cp.new_int_var(0, self.highest, "")
        self.least = self.cp.new_int_var(0, self.highest, "")
        if model.instance.full_nodes:
            self.constant(0)

    def constant(self, whole: int) -> None:
        self.cp.add(self.most >= whole)
        self.cp.add(self.least <= whole)

    def expression(self, whole: Var) -> None:
        self.cp.add(self.most >= whole)
        self.cp.add(self.least <= whole)

    def some(self, units: list[Var], count: int, whole: int) -> None:
        """Any of these nodes of a bundle is used, and has so many left."""
        flag = self.cp.new_bool_var("")
        self.cp.add(sum(units) <= count * flag)
        self.when(flag, whole)

    def rest(self, units: list[Var], count: int, whole: int) -> None:
        """Nodes of the bundle that nobody uses."""
        flag = self.cp.new_bool_var("")
        self.cp.add(count - sum(units) <= count * flag)
        self.when(flag, whole)

    def when(self, flag: Var, whole: int) -> None:
        self.cp.add(self.most >= whole * flag)
        self.cp.add(self.least <= self.highest - (self.highest - whole) * flag)

    def close(self) -> None:
        if self.model.places:
            self.model.gain += [(self.most, -BALANCE), (self.least, BALANCE)]


class Hint:
    """Tells the solver a plan, in the variables of the model."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.place_of = {
            node.node_id: number
            for number, place in enumerate(model.places)
            for node in place.nodes
        }
        self.values: dict[int, tuple[Var, int]] = {}
        self.opened: dict[int, dict[int, int]] = {}
        """Place -> GPU -> its bin, for GPUs that a share opens."""

    def give(self, plan: RoundPlan) -> None:
        model = self.model
        for gang in [*model.gangs, *model.reservations.values(), *model.migrants]:
            for var in [gang.begins, *gang.workers.values(), *gang.bins.values()]:
                self.set(var, 0)
        for start in plan.starts:
            self.begin(model.gangs[start.request], start.slots)
        for migration in plan.migrations:
            self.begin(model.migrants[migration.victim], migration.slots)
        for reservation in plan.reservations:
            self.set(model.reservations[reservation.request].begins, 1)
            self.count(model.reservations[reservation.request], reservation.workers)
        for victim, stop in enumerate(model.stops):
            self.set(stop, int(victim in plan.stops))
        for var, value in self.values.values():
            model.cp.add_hint(var, value)

    def set(self, var: Var, value: int) -> None:
        self.values[var.index] = (var, value)

    def begin(self, gang: GangVariables, slots: tuple[Slot, ...]) -> None:
        self.set(gang.begins, 1)
        self.count(gang, Counter(slot.node_id for slot in slots).items())
        if gang.request.is_share:
            bins = Counter((number := self.place_of[s.node_id], self.bin(number, s)) for s in slots)
            for key, workers in bins.items():
                self.set(gang.bins[key], workers)

    def count(self, gang: GangVariables, workers: Iterable[tuple[str, int]]) -> None:
        by_place: Counter[int] = Counter()
        for name, many in workers:
            by_place[self.place_of[name]] += many
        for number, many in by_place.items():
            self.set(gang.workers[number], many // gang.per[number])

    def bin(self, number: int, slot: Slot) -> int:
        """GPUs that shares open are the bins after the partly used ones, in the plan's order."""
        (gpu,) = slot.gpus
        node, partly = self.model.places[number].nodes[0], len(self.model.cls(number).partial)
        if node.free[gpu] < GPU:
            return gpus_of(node).index(gpu)
        opened = self.opened.setdefault(number, {})
        return opened.setdefault(gpu, partly + len(opened))


def total(terms: Iterable[tuple[Var, int]]) -> Var:
    pairs = list(terms)
    if not pairs:
        return 0
    return cp_model.LinearExpr.weighted_sum([v for v, _ in pairs], [c for _, c in pairs])


def need_of(request: GangRequest) -> tuple[int, int, int, int]:
    return request.gpus, request.milli, request.cpu_milli, request.mem_mib


def free_of(cls: NodeClass) -> NodeRemainder:
    return NodeRemainder(cls.gpus, cls.whole, 0, cls.cpu_milli, cls.mem_mib)
