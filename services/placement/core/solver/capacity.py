"""The capacity of nodes in a round's model, and the terms for what is left of them."""

from __future__ import annotations

from services.placement.core.pool.shape import GPU
from services.placement.core.solver.instance import NodeClass
from services.placement.core.solver.objective import (
    BALANCE,
    FRAGMENT,
    NodeRemainder,
    fragments,
    room,
)
from services.placement.core.solver.variables import Load, Sum, Var, Variables, free_of, total


class Capacity:
    """Adds the constraints and terms of every place to the model."""

    def __init__(self, model: Variables) -> None:
        self.model = model
        places = range(len(model.places))
        self.share_bins()
        for number in places:
            self.capacity(number)
        self.balance = Balance(model)
        for number in places:
            self.tidy(number)
        self.in_order()
        self.balance.close()

    def share_bins(self) -> None:
        """Let shares open unused GPUs; each counts as one whole GPU less."""
        for (number, at), taken in self.model.shares.items():
            partly = self.model.cls(number).partial
            if at < len(partly):
                self.model.cp.add(total(taken) <= partly[at])
                continue
            opened = self.model.bool()
            self.model.cp.add(total(taken) <= GPU * opened)
            self.model.cp.add(sum(var for var, _ in taken) >= opened)
            self.model.now[number].opened.append(opened)
            self.model.now[number].gpus.append((opened, 1))
            self.model.gain.append((opened, -FRAGMENT))

    def capacity(self, number: int) -> None:
        place, cls = self.model.places[number], self.model.cls(number)
        if not place.is_single:
            now, later = (
                self.model.bundle_units.get(number, []),
                self.model.bundle_later.get(number, []),
            )
            if now or later:
                self.model.cp.add(sum(now) + sum(later) <= place.count)
            return
        load, later_load = self.model.now[number], self.model.later[number]
        self.bound(load.gpus, cls.whole)
        self.bound(load.cpu, cls.cpu_milli)
        self.bound(load.mem, cls.mem_mib)
        if later_load.gpus:
            back = [(self.model.stops[share.victim], share) for share in cls.victim_shares]
            whole = [(stop, -share.whole) for stop, share in back]
            cpu = [(stop, -share.cpu_milli) for stop, share in back]
            mem = [(stop, -share.mem_mib) for stop, share in back]
            self.bound(load.gpus + later_load.gpus + whole, cls.whole)
            self.bound(load.cpu + later_load.cpu + cpu, cls.cpu_milli)
            self.bound(load.mem + later_load.mem + mem, cls.mem_mib)

    def bound(self, taken: Sum, most: int) -> None:
        terms = [(var, need) for var, need in taken if need]
        if terms:
            self.model.cp.add(total(terms) <= most)

    def tidy(self, number: int) -> None:
        if self.model.places[number].is_single:
            self.tidy_single(number)
        else:
            self.tidy_bundle(number)

    def tidy_single(self, number: int) -> None:
        cls, load = self.model.cls(number), self.model.now[number]
        if not load.gpus:
            self.model.constant += self.worth(cls, cls.whole, cls.cpu_milli, cls.mem_mib)
            if load.cpu:
                self.room_flag(cls, load)
                self.model.constant -= room(self.model.instance, free_of(cls))
            self.balance.constant(cls.whole)
            return
        used = total(load.gpus)
        some_left = self.model.bool()
        self.model.cp.add(cls.whole - used <= cls.whole * some_left)
        if cls.whole < cls.gpus:
            self.model.gain.append((some_left, -FRAGMENT))
        else:
            partly, touched = self.model.bool(), self.model.bool()
            self.model.cp.add(used <= cls.whole * touched)
            self.model.cp.add(partly >= some_left + touched - 1)
            self.model.gain.append((partly, -FRAGMENT))
        self.room_flag(cls, load)
        self.balance.expression(cls.whole - used)

    def room_flag(self, cls: NodeClass, load: Load) -> None:
        need, worth = self.model.instance.next_worker, room(self.model.instance, free_of(cls))
        if not worth:
            return
        flag = self.model.bool()
        self.model.cp.add(cls.whole - total(load.gpus) >= need.gpus * flag)
        if need.cpu_milli and load.cpu:
            self.model.cp.add(cls.cpu_milli - total(load.cpu) >= need.cpu_milli * flag)
        if need.mem_mib and load.mem:
            self.model.cp.add(cls.mem_mib - total(load.mem) >= need.mem_mib * flag)
        self.model.gain.append((flag, worth))

    def tidy_bundle(self, number: int) -> None:
        cls, place = self.model.cls(number), self.model.places[number]
        untouched = self.worth(cls, cls.whole, cls.cpu_milli, cls.mem_mib)
        self.model.constant += untouched * place.count
        units: list[Var] = []
        by_left: dict[int, list[Var]] = {}
        for gang in self.model.gangs + self.model.migrants:
            if number in gang.workers:
                var, workers, request = gang.workers[number], gang.per[number], gang.request
                whole = cls.whole - workers * request.gpus
                cpu = cls.cpu_milli - workers * request.cpu_milli
                mem = cls.mem_mib - workers * request.mem_mib
                self.model.gain.append((var, self.worth(cls, whole, cpu, mem) - untouched))
                by_left.setdefault(whole, []).append(var)
                units.append(var)
        for whole, some in by_left.items():
            self.balance.some(some, place.count, whole)
        self.balance.rest(units, place.count, cls.whole)

    def worth(self, cls: NodeClass, whole: int, cpu: int, mem: int) -> int:
        left = NodeRemainder(cls.gpus, whole, 0, cpu, mem)
        return room(self.model.instance, left) - fragments(left)

    def in_order(self) -> None:
        """Use nodes that are alike in one order; the hint keeps to it."""
        for numbers in self.model.by_class.values():
            alike = [
                n for n in numbers if self.model.places[n].is_single and self.model.now[n].gpus
            ]
            for node, next_node in zip(alike, alike[1:], strict=False):
                self.model.cp.add(
                    total(self.model.now[node].gpus) >= total(self.model.now[next_node].gpus)
                )


class Balance:
    """The most and the fewest whole GPUs that any node has left."""

    def __init__(self, model: Variables) -> None:
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
        """Bound by what used nodes of a bundle have left."""
        flag = self.cp.new_bool_var("")
        self.cp.add(sum(units) <= count * flag)
        self.when(flag, whole)

    def rest(self, units: list[Var], count: int, whole: int) -> None:
        """Bound by what unused nodes of a bundle have left."""
        flag = self.cp.new_bool_var("")
        self.cp.add(count - sum(units) <= count * flag)
        self.when(flag, whole)

    def when(self, flag: Var, whole: int) -> None:
        self.cp.add(self.most >= whole * flag)
        self.cp.add(self.least <= self.highest - (self.highest - whole) * flag)

    def close(self) -> None:
        if self.model.places:
            self.model.gain += [(self.most, -BALANCE), (self.least, BALANCE)]
