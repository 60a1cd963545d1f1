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
from services.placement.core.solver.instance import Instance, NodeClass, RoundPlan, Wish
from services.placement.core.solver.objective import (
    BALANCE,
    FRAGMENT,
    Left,
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
class Gang:
    """The variables of one gang that would start (or move) now."""

    wish: Wish
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
        shares = (wish.max_workers for wish in instance.wishes if wish.is_share)
        self.share_workers = sum(shares)
        """So many GPUs at most are opened on one node."""
        self.bundle_units: dict[int, list[Var]] = {}
        self.bundle_later: dict[int, list[Var]] = {}
        self.by_class: dict[int, list[int]] = {}
        for number, place in enumerate(places):
            self.by_class.setdefault(place.cls, []).append(number)
        self.gangs = [self.starter(wish) for wish in instance.wishes]
        self.stops = [self.bool() for _ in instance.victims]
        self.claims = {
            index: self.claimer(wish) for index, wish in enumerate(instance.wishes) if wish.victims
        }
        self.movers = [self.mover(index) for index in range(len(instance.victims))]
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

    def starter(self, wish: Wish) -> Gang:
        gang = Gang(wish, self.bool())
        if not wish.victims:
            self.spread(gang)
        if not gang.workers:
            self.cp.add(gang.begins == 0)
            return gang
        if wish.must:
            self.cp.add(gang.begins == 1)
        self.value(gang)
        self.compact(gang)
        return gang

    def mover(self, index: int) -> Gang:
        victim = self.instance.victims[index]
        gang = Gang(victim.wish, self.bool())
        self.spread(gang)
        self.gain.append((self.stops[index], -victim.price))
        self.gain.append((gang.begins, victim.price - victim.move_price))
        self.cp.add(gang.begins <= self.stops[index] if gang.workers else gang.begins == 0)
        return gang

    def spread(self, gang: Gang) -> None:
        """Workers by place, and all of the gang or none."""
        wish = gang.wish
        for index in wish.classes:
            per_node = workers_now(self.instance.classes[index], wish)
            for number in self.by_class.get(index, ()) if per_node else ():
                self.put(gang, number, per_node)
        if gang.workers:
            workers = total((var, gang.per[number]) for number, var in gang.workers.items())
            self.cp.add(workers >= wish.min_workers * gang.begins)
            self.cp.add(workers <= wish.max_workers * gang.begins)

    def put(self, gang: Gang, number: int, per_node: int) -> None:
        wish, place, load = gang.wish, self.places[number], self.now[number]
        if place.is_single:
            var, per = self.upto(per_node), 1
        elif wish.is_share or not wish.gpus:
            return
        else:
            var, per = self.upto(min(place.count, wish.max_workers // per_node)), per_node
            self.bundle_units.setdefault(number, []).append(var)
        gang.workers[number], gang.per[number] = var, per
        if place.is_single:
            load.cpu.append((var, wish.cpu_milli))
            load.mem.append((var, wish.mem_mib))
            if wish.is_share:
                self.put_share(gang, number, var)
            elif wish.gpus:
                load.gpus.append((var, wish.gpus))

    def put_share(self, gang: Gang, number: int, workers: Var) -> None:
        free = bins_of(self.cls(number), self.share_workers)
        for at, milli in enumerate(free):
            most = min(milli // gang.wish.milli, gang.wish.max_workers)
            if most:
                var = gang.bins[number, at] = self.upto(most)
                self.shares.setdefault((number, at), []).append((var, gang.wish.milli))
        here = [var for (place, _), var in gang.bins.items() if place == number]
        self.cp.add(sum(here) == workers)

    def value(self, gang: Gang) -> None:
        """A gang runs at its slowest node's speed: which level that is, is chosen with it."""
        wish = gang.wish
        speed_of = dict(zip(wish.classes, wish.speeds, strict=True))
        speeds = {number: speed_of[self.places[number].cls] for number in gang.workers}
        levels = sorted(set(speeds.values()), reverse=True)
        if len(levels) == 1:
            self.gain.append((gang.begins, at_speed(wish.value, levels[0])))
        else:
            chosen = {level: self.bool() for level in levels}
            self.cp.add(sum(chosen.values()) == gang.begins)
            self.gain += [(var, at_speed(wish.value, level)) for level, var in chosen.items()]
            for number, var in gang.workers.items():
                allowed = [chosen[level] for level in levels if level <= speeds[number]]
                self.cp.add(var <= self.most(gang, number) * sum(allowed))
        if wish.extra:
            self.gain += [(v, wish.extra * gang.per[n]) for n, v in gang.workers.items()]
            self.gain.append((gang.begins, -wish.extra * wish.min_workers))

    def most(self, gang: Gang, number: int) -> int:
        place = self.places[number]
        per_node = workers_now(self.cls(number), gang.wish)
        return per_node if place.is_single else place.count

    def compact(self, gang: Gang) -> None:
        """Few nodes and few racks, for a gang that could use several."""
        wish = gang.wish
        if wish.max_workers == 1:
            return
        cost = node_unit(wish)
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

    def few_racks(self, gang: Gang, racks: dict[int, list[Var]]) -> None:
        cost = rack_unit(self.instance, gang.wish)
        for flags in racks.values():
            rack = self.bool()
            for flag in flags:
                self.cp.add_implication(flag, rack)
            self.gain.append((rack, -cost))
        self.gain.append((gang.begins, cost))

    def indicator(self, gang: Gang, number: int, var: Var) -> Var:
        most = self.most(gang, number)
        if most == 1:
            return var
        flag = self.bool()
        self.cp.add(var <= most * flag)
        return flag

    def claimer(self, wish: Wish) -> Gang:
        """A gang on what is free now and what victims give back; it starts when they are gone."""
        gang = Gang(wish, self.bool())
        self.gain.append((gang.begins, wish.value))
        for index in wish.classes:
            cls = self.instance.classes[index]
            per_node = workers_later(cls, wish)
            for number in self.by_class.get(index, ()) if per_node else ():
                self.put_later(gang, number, per_node)
        workers = total((var, gang.per[number]) for number, var in gang.workers.items())
        self.cp.add(workers == wish.min_workers * gang.begins)
        return gang

    def put_later(self, gang: Gang, number: int, per_node: int) -> None:
        place, wish, load = self.places[number], gang.wish, self.later[number]
        if place.is_single:
            var, per = self.upto(per_node), 1
            load.gpus.append((var, wish.gpus))
            load.cpu.append((var, wish.cpu_milli))
            load.mem.append((var, wish.mem_mib))
        else:
            var, per = self.upto(min(place.count, wish.min_workers // per_node or 1)), per_node
            self.bundle_later.setdefault(number, []).append(var)
            for held in self.cls(number).held:
                self.cp.add(var <= place.count * self.stops[held.victim])
        gang.workers[number], gang.per[number] = var, per

    def entitle(self) -> None:
        """A victim stops only for a claim that may ask for it; who has a claim does not start."""
        asking: dict[int, list[Var]] = {}
        for index, claim in self.claims.items():
            self.cp.add_at_most_one(claim.begins, self.gangs[index].begins)
            for victim in claim.wish.victims:
                asking.setdefault(victim, []).append(claim.begins)
        for victim, stop in enumerate(self.stops):
            self.cp.add(stop <= sum(asking.get(victim, [])))

    def same_shapes(self) -> None:
        """Of jobs that ask for the same the first in line goes first: no value is lost by it."""
        last: dict[tuple[object, ...], Gang] = {}
        for gang in self.gangs:
            wish = gang.wish
            if wish.victims:
                continue
            key = (*need_of(wish), wish.min_workers, wish.max_workers, wish.classes, wish.speeds)
            if key in last and gang.wish.value <= last[key].wish.value:
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
            back = [(self.stops[held.victim], held) for held in cls.held]
            whole = [(stop, -held.whole) for stop, held in back]
            cpu = [(stop, -held.cpu_milli) for stop, held in back]
            mem = [(stop, -held.mem_mib) for stop, held in back]
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
        need, worth = self.instance.room, room(self.instance, free_of(cls))
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
        for gang in self.gangs + self.movers:
            if number in gang.workers:
                var, workers, wish = gang.workers[number], gang.per[number], gang.wish
                whole = cls.whole - workers * wish.gpus
                cpu = cls.cpu_milli - workers * wish.cpu_milli
                mem = cls.mem_mib - workers * wish.mem_mib
                self.gain.append((var, self.worth(cls, whole, cpu, mem) - untouched))
                by_left.setdefault(whole, []).append(var)
                units.append(var)
        for whole, some in by_left.items():
            self.balance_of.some(some, place.count, whole)
        self.balance_of.rest(units, place.count, cls.whole)

    def worth(self, cls: NodeClass, whole: int, cpu: int, mem: int) -> int:
        left = Left(cls.gpus, whole, 0, cpu, mem)
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
        for gang in [*model.gangs, *model.claims.values(), *model.movers]:
            for var in [gang.begins, *gang.workers.values(), *gang.bins.values()]:
                self.set(var, 0)
        for start in plan.starts:
            self.begin(model.gangs[start.wish], start.slots)
        for move in plan.moves:
            self.begin(model.movers[move.victim], move.slots)
        for claim in plan.claims:
            self.set(model.claims[claim.wish].begins, 1)
            self.count(model.claims[claim.wish], claim.workers)
        for victim, stop in enumerate(model.stops):
            self.set(stop, int(victim in plan.stops))
        for var, value in self.values.values():
            model.cp.add_hint(var, value)

    def set(self, var: Var, value: int) -> None:
        self.values[var.index] = (var, value)

    def begin(self, gang: Gang, slots: tuple[Slot, ...]) -> None:
        self.set(gang.begins, 1)
        self.count(gang, Counter(slot.node_id for slot in slots).items())
        if gang.wish.is_share:
            bins = Counter((number := self.place_of[s.node_id], self.bin(number, s)) for s in slots)
            for key, workers in bins.items():
                self.set(gang.bins[key], workers)

    def count(self, gang: Gang, workers: Iterable[tuple[str, int]]) -> None:
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


def need_of(wish: Wish) -> tuple[int, int, int, int]:
    return wish.gpus, wish.milli, wish.cpu_milli, wish.mem_mib


def free_of(cls: NodeClass) -> Left:
    return Left(cls.gpus, cls.whole, 0, cls.cpu_milli, cls.mem_mib)
