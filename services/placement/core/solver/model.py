"""The CP-SAT model of a contended round: exactly `objective.score`, over `places.layout`.

Per job and place an integer number of workers (a bundle: of nodes); a gang starts with at least
its least workers or not at all. Two capacities hold at every node: what is free now carries the
starts, and that with what stopping victims give back carries the reservations as well.
"""

from __future__ import annotations

from services.placement.core.solver.capacity import Capacity
from services.placement.core.solver.instance import GangRequest, Instance
from services.placement.core.solver.objective import (
    at_speed,
    link_speed,
    linked,
    node_unit,
    rack_unit,
)
from services.placement.core.solver.places import NodeBundle, bins_of, workers_later, workers_now
from services.placement.core.solver.variables import (
    GangVariables,
    Sum,
    Var,
    Variables,
    need_of,
    total,
)


class RoundModel(Variables):
    """The whole model, built once per instance; `solve.py` runs it and reads the plan back."""

    def __init__(self, instance: Instance, places: list[NodeBundle]) -> None:
        super().__init__(instance, places)
        self.gangs = [self.starter(request) for request in instance.requests]
        self.stops = [self.bool() for _ in instance.victims]
        self.reservations = {
            index: self.reservation_gang(request)
            for index, request in enumerate(instance.requests)
            if request.victims
        }
        self.migrants = [self.migrant(index) for index in range(len(instance.victims))]
        self.entitle()
        self.wait()
        self.same_shapes()
        Capacity(self)
        self.cp.maximize(total(self.gain) + self.constant)

    def starter(self, request: GangRequest) -> GangVariables:
        gang = GangVariables(request, self.bool())
        if not request.victims:
            self.spread(gang)
        if not gang.workers:
            self.cp.add(gang.begins == 0)
            return gang
        self.value(gang)
        self.compact(gang)
        return gang

    def migrant(self, index: int) -> GangVariables:
        victim = self.instance.victims[index]
        gang = GangVariables(victim.request, self.bool())
        self.spread(gang)
        self.gain.append((self.stops[index], -victim.price))
        self.gain.append((gang.begins, victim.price - victim.migration_price))
        self.cp.add(gang.begins <= self.stops[index] if gang.workers else gang.begins == 0)
        return gang

    def spread(self, gang: GangVariables) -> None:
        """Add workers by place, and all of the gang or none."""
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
        workers_by_gpu = [var for (place, _), var in gang.bins.items() if place == number]
        self.cp.add(sum(workers_by_gpu) == workers)

    def value(self, gang: GangVariables) -> None:
        """Add the value of a start: the gang runs at the speed of its slowest node and links."""
        request = gang.request
        speed_of = dict(zip(request.classes, request.speeds, strict=True))
        speeds = {number: speed_of[self.places[number].cls] for number in gang.workers}
        levels = sorted(set(speeds.values()), reverse=True)
        tiers = range(3 if request.spread and request.max_workers > 1 else 1)
        if len(levels) == len(tiers) == 1:
            self.gain.append((gang.begins, at_speed(request.value, levels[0])))
        else:
            gang.chosen = {(level, tier): self.bool() for level in levels for tier in tiers}
            self.cp.add(sum(gang.chosen.values()) == gang.begins)
            for (level, tier), var in gang.chosen.items():
                own = at_speed(request.value, linked(level, link_speed(request, tier)))
                self.gain.append((var, own))
            for number, var in gang.workers.items():
                allowed = [
                    way for (level, _), way in gang.chosen.items() if level <= speeds[number]
                ]
                self.cp.add(var <= self.most(gang, number) * sum(allowed))
            if len(tiers) > 1:
                self.tiers(gang)
        if request.extra:
            self.gain += [(v, request.extra * gang.per[n]) for n, v in gang.workers.items()]
            self.gain.append((gang.begins, -request.extra * request.min_workers))

    def tiers(self, gang: GangVariables) -> None:
        """Let a gang be on several nodes, and in several racks, only at the speed of its links."""
        nodes: list[Var] = []
        racks: dict[int, list[Var]] = {}
        for number, var in gang.workers.items():
            flag = self.indicator(gang, number, var)
            nodes.append(flag if self.places[number].is_single else var)
            racks.setdefault(self.cls(number).rack, []).append(flag)
        more = gang.request.max_workers - 1
        spread = [var for (_, tier), var in gang.chosen.items() if tier > 0]
        self.cp.add(sum(nodes) <= 1 + more * sum(spread))
        over = [var for (_, tier), var in gang.chosen.items() if tier > 1]
        self.cp.add(sum(self.rack_flags(racks)) <= 1 + more * sum(over))

    def rack_flags(self, racks: dict[int, list[Var]]) -> list[Var]:
        """Return for each rack whether one of its places is used."""
        flags = []
        for used in racks.values():
            flags.append(self.bool())
            for place in used:
                self.cp.add_implication(place, flags[-1])
        return flags

    def most(self, gang: GangVariables, number: int) -> int:
        place = self.places[number]
        per_node = workers_now(self.cls(number), gang.request)
        return per_node if place.is_single else place.count

    def compact(self, gang: GangVariables) -> None:
        """Add the cost of nodes and racks beyond the first, for a gang that could use several."""
        request = gang.request
        if request.max_workers == 1 or request.spread is not None:
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
        self.gain += [(rack, -cost) for rack in self.rack_flags(racks)]
        self.gain.append((gang.begins, cost))

    def indicator(self, gang: GangVariables, number: int, var: Var) -> Var:
        most = self.most(gang, number)
        if most == 1:
            return var
        flag = self.bool()
        self.cp.add(var <= most * flag)
        return flag

    def reservation_gang(self, request: GangRequest) -> GangVariables:
        """Return a gang on what is free now and what victims give back, once they are gone."""
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

    def wait(self) -> None:
        """Let a job start, wait for one release, or neither; the first in the queue does either."""
        taken: dict[int, Sum] = {}
        for index, gang in enumerate(self.gangs):
            request, ways = gang.request, [gang.begins]
            for release, speed in request.waits:
                var = self.waits[index, release] = self.bool()
                self.gain.append((var, at_speed(request.value, speed)))
                taken.setdefault(release, []).append((var, request.gpus))
                ways.append(var)
            if request.must_start:
                self.cp.add_exactly_one(ways)
            elif len(ways) > 1:
                self.cp.add_at_most_one(ways)
        for release, of_jobs in taken.items():
            self.cp.add(total(of_jobs) <= self.instance.releases[release].gpus)

    def entitle(self) -> None:
        """Let a victim stop only for the reservation of a job that may stop it."""
        entitled: dict[int, list[Var]] = {}
        for index, reservation in self.reservations.items():
            self.cp.add_at_most_one(reservation.begins, self.gangs[index].begins)
            for victim in reservation.request.victims:
                entitled.setdefault(victim, []).append(reservation.begins)
        for victim, stop in enumerate(self.stops):
            self.cp.add(stop <= sum(entitled.get(victim, [])))

    def same_shapes(self) -> None:
        """Start the first in the queue of equal requests first: no value is lost by it."""
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
                request.spread,
                request.waits,
            )
            if key in last and gang.request.value <= last[key].request.value:
                self.cp.add_implication(gang.begins, last[key].begins)
            last[key] = gang
