"""The event loop: facts of an instant, then a ranking, then a round; see `README.md` for the rules."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from services.priority.core.history import BINS, FADE, LEVELS, TRUST
from simulator.kernel import keys
from simulator.kernel.board import place, room, shift
from simulator.kernel.heap import pop, push

FCFS, SMALLEST, SJF, SAF, F1, WFP3, UNICEP, MULTIFACTOR, LAS, SRTF, SRSF, GITTINS, LEARNED = range(
    13
)
STRICT, SKIP, EASY = range(3)
FUTURE, WAITING, RUNNING, DONE = range(4)
EVICTIONS_PER_ROUND = 8
SEARCHES_PER_ROUND = 32
SETTLE_MS = 1
SETTLE_MOST_MS = 10
NEVER = np.int64(1 << 62)
JOB_FEATURES, CONTEXT_FEATURES = 8, 4
PER_HIDDEN = JOB_FEATURES + CONTEXT_FEATURES + 2
"""Weights of one hidden unit: its inputs, its bias, its output."""
LEAST_GPUS = 0.01
LARGE_MOST = 0.1
"""Share of recent jobs that are large, above which nobody is stopped by rank."""
CONTEXT_MS = 3_600_000
"""The kernel looks at the context this often; the live service at every ranking."""
_FADE = np.array(FADE)
_TRUST = np.array(TRUST)


@njit(cache=True)
def key_of(policy, j, now, submit, gang, run_s, attained_s, epoch, pool_gpus, p):
    """Lower goes first; `run_s` is what the source says, `p` the job's distribution."""
    if policy == FCFS:
        return submit[j] / 1000.0
    if policy == SMALLEST:
        return keys.smallest_first(gang[j])
    if policy == SJF:
        return keys.sjf(run_s)
    if policy == SAF:
        return keys.saf(run_s, gang[j])
    if policy == F1:
        return keys.f1(run_s, gang[j], (submit[j] - epoch) / 1000.0)
    if policy == WFP3:
        return keys.wfp3((now - submit[j]) / 1000.0, run_s, gang[j])
    if policy == UNICEP:
        return keys.unicep((now - submit[j]) / 1000.0, run_s, gang[j])
    if policy == MULTIFACTOR:
        return keys.multifactor((now - submit[j]) / 1000.0, gang[j], pool_gpus, 0.0)
    if policy == LAS:
        return keys.las(attained_s * gang[j])
    return 0.0


@njit(cache=True)
def learned_key(j, gang, attained_s, running, restarts, p, spread, pool_gpus, theta, hidden):
    """Minus the network's score; `hidden` [1 + H] is what the context adds, see `weights.py`."""
    g = max(gang[j], LEAST_GPUS)
    x0 = math.log(keys.gittins_s(p, attained_s) + 1.0) / 10.0
    x1 = math.log(keys.mean_left_s(p, attained_s) + 1.0) / 10.0
    x2 = math.log(g) / 5.0
    x3 = math.log(g / pool_gpus) / 5.0
    x4 = math.log(keys.level_s(keys.bin_of(attained_s)) + 60.0) / 10.0
    x5 = spread
    x6 = math.log(restarts + 1.0)
    x7 = 1.0 if running else 0.0
    score = hidden[0] - 5.0 * (x0 + x1 + x2)
    t = theta
    score += t[0] * x0 + t[1] * x1 + t[2] * x2 + t[3] * x3 + t[4] * x4 + t[5] * x5 + t[6] * x6
    score += t[7] * x7
    at = JOB_FEATURES + CONTEXT_FEATURES
    for h in range(hidden.shape[0] - 1):
        z = hidden[1 + h]
        z += t[at] * x0 + t[at + 1] * x1 + t[at + 2] * x2 + t[at + 3] * x3
        z += t[at + 4] * x4 + t[at + 5] * x5 + t[at + 6] * x6 + t[at + 7] * x7
        score += t[at + JOB_FEATURES + CONTEXT_FEATURES + 1] * math.tanh(z)
        at += PER_HIDDEN
    return -score


@njit(cache=True)
def context_hidden(theta, context, hidden):
    """What the pool's context adds to the score [0] and to each hidden unit [1 + h]."""
    hidden[0] = 0.0
    for c in range(CONTEXT_FEATURES):
        hidden[0] += theta[JOB_FEATURES + c] * context[c]
    at = JOB_FEATURES + CONTEXT_FEATURES
    for h in range(hidden.shape[0] - 1):
        hidden[1 + h] = theta[at + JOB_FEATURES + CONTEXT_FEATURES]
        for c in range(CONTEXT_FEATURES):
            hidden[1 + h] += theta[at + JOB_FEATURES + c] * context[c]
        at += PER_HIDDEN


@njit(cache=True)
def spread_of(p):
    low = keys.quantile_s(p, 0.1)
    high = keys.quantile_s(p, 0.9)
    return math.log(max(high, 1.0) / max(low, 1.0)) / 10.0


@njit(cache=True)
def left_key(policy, j, gang, left_s):
    if policy == SRTF:
        return keys.srtf(left_s)
    return keys.srsf(left_s, gang[j])


@njit(cache=True)
def find(queue, count, key, submit, tie, j):
    """Where the job belongs in the line."""
    low, high = 0, count
    while low < high:
        mid = (low + high) // 2
        k = queue[mid]
        ahead = key[k] < key[j] or (
            key[k] == key[j]
            and (submit[k] < submit[j] or (submit[k] == submit[j] and tie[k] < tie[j]))
        )
        if ahead:
            low = mid + 1
        else:
            high = mid
    return low


@njit(cache=True)
def distribution(j, groups, counts, p):
    keys.start(p)
    for level in range(LEVELS):
        g = groups[j, level]
        if g >= 0:
            keys.shrink(counts[g], _TRUST[level], p)


@njit(cache=True)
def run(
    submit,
    duration,
    workers,
    gpus,
    shape,
    dearer,
    estimate,
    groups,
    counts,
    tie,
    free,
    levels,
    mode,
    policy,
    by_history,
    ranked,
    residency,
    margin,
    share,
    large_at_start,
    refresh,
    restart,
    interval,
    window_from,
    window_to,
    theta,
):
    n = submit.shape[0]
    n_nodes = free.shape[0]
    pool_gpus = 0.0
    for node in range(n_nodes):
        pool_gpus += free[node]
    most = 1
    for j in range(n):
        most = max(most, workers[j])
    most = min(most, n_nodes)
    slots = 64
    alloc_node = np.zeros((slots, most), np.int32)
    alloc_gpus = np.zeros((slots, most), np.int32)
    alloc_count = np.zeros(slots, np.int64)
    open_slots = np.arange(slots)[::-1].copy()
    n_open = slots
    slot_of = np.full(n, -1, np.int64)

    gang = np.empty(n, np.float64)
    for j in range(n):
        gang[j] = workers[j] * gpus[j]
    state = np.zeros(n, np.int8)
    key = np.zeros(n, np.float64)
    first_start = np.full(n, -1, np.int64)
    started = np.zeros(n, np.int64)
    ends = np.full(n, -1, np.int64)
    kept = np.zeros(n, np.int64)
    paid = np.zeros(n, np.int64)
    starts = np.zeros(n, np.int64)
    lost = np.zeros(n, np.int64)
    held = np.zeros(n, np.int64)
    debt = np.zeros(n, np.int64)
    claims = np.zeros(n, np.bool_)
    n_claims = 0

    has_p = by_history or policy == GITTINS or policy == LEARNED
    dist = np.zeros((n if has_p else 1, BINS))
    run_s = np.empty(n, np.float64)
    for j in range(n):
        run_s[j] = estimate[j] / 1000.0
    level_until = np.zeros(n, np.int64)
    level_key = np.zeros(n, np.float64)
    spread = np.zeros(n if policy == LEARNED else 1, np.float64)
    n_hidden = (theta.shape[0] - JOB_FEATURES - CONTEXT_FEATURES) // PER_HIDDEN
    hidden = np.zeros(1 + n_hidden, np.float64)
    context = np.zeros(CONTEXT_FEATURES, np.float64)
    context_at = np.int64(-CONTEXT_MS)

    queue = np.empty(1024, np.int64)
    n_queue = 0
    waiting_of = np.zeros(dearer.shape[0], np.int64)
    n_shapes_waiting = 0
    running = np.empty(1024, np.int64)
    n_running = 0
    place_of = np.full(n, -1, np.int64)
    heap_t = np.empty(1024, np.int64)
    heap_j = np.empty(1024, np.int64)
    n_heap = 0

    nodes = np.zeros(most, np.int64)
    shares = np.zeros(most, np.int64)
    failed = np.zeros(dearer.shape[0], np.bool_)
    hopeless = np.zeros(dearer.shape[0], np.bool_)
    kept_node = np.zeros(n_nodes * (EVICTIONS_PER_ROUND + 1), np.int64)
    kept_gpus = np.zeros(n_nodes * (EVICTIONS_PER_ROUND + 1), np.int64)
    free2 = np.zeros(n_nodes, free.dtype)
    levels2 = np.zeros(levels.shape[0], np.int64)

    dynamic = policy == WFP3 or policy == UNICEP or policy == MULTIFACTOR
    logs = policy == SRSF or policy == GITTINS
    stepwise = (
        policy == GITTINS
        or policy == LEARNED
        or (by_history and (policy == SRTF or policy == SRSF))
    )
    arrival = 0
    done = 0
    never = 0
    epoch = submit[0] if n else 0
    ranked_at = np.int64(0)
    first_change = NEVER
    round_due = NEVER
    again_at = NEVER
    clock = submit[0] if n else 0
    used = 0.0
    busy = 0.0
    rounds = 0
    large = large_at_start
    preemptions = 0
    context_hidden(theta, context, hidden)
    for j in range(n):
        if not room(levels, workers[j], gpus[j]):
            state[j] = DONE
            never += 1

    while done + never < n:
        # ---- what comes next -----------------------------------------------------------
        while arrival < n and state[arrival] == DONE:
            arrival += 1
        while n_heap and not (state[heap_j[0]] == RUNNING and ends[heap_j[0]] == heap_t[0]):
            n_heap = pop(heap_t, heap_j, n_heap)
        t_arrival = submit[arrival] if arrival < n else NEVER
        t_end = heap_t[0] if n_heap else NEVER
        t_rank = ranked_at + refresh if (ranked and n_queue) else NEVER
        t_again = again_at if n_queue else NEVER
        now = min(t_arrival, t_end, t_rank, t_again)
        if round_due < now:
            now = round_due
        elif now == NEVER:
            break
        if now > clock:
            low, high = max(clock, window_from), min(now, window_to)
            if high > low:
                busy += used * (high - low)
            clock = now

        # ---- facts of this instant -----------------------------------------------------
        if now == t_arrival or now == t_end or now == t_rank or now == t_again:
            news = now == t_arrival or now == t_end or now == t_rank
            while n_heap and heap_t[0] == now:
                j = heap_j[0]
                n_heap = pop(heap_t, heap_j, n_heap)
                if state[j] != RUNNING or ends[j] != now:
                    continue
                state[j] = DONE
                done += 1
                held[j] += now - started[j]
                lost[j] += paid[j]
                used -= gang[j]
                slot = slot_of[j]
                for i in range(alloc_count[slot]):
                    shift(free, levels, alloc_node[slot, i], alloc_gpus[slot, i])
                open_slots[n_open] = slot
                n_open += 1
                last = running[n_running - 1]
                running[place_of[j]] = last
                place_of[last] = place_of[j]
                n_running -= 1
                if has_p:
                    at = keys.bin_of(duration[j] / 1000.0)
                    for level in range(LEVELS):
                        if groups[j, level] >= 0:
                            keys.learn(counts[groups[j, level]], at, _FADE[level])
            while arrival < n and (submit[arrival] == now or state[arrival] == DONE):
                j = arrival
                arrival += 1
                if state[j] == DONE:
                    continue
                if has_p:
                    distribution(j, groups, counts, dist[j])
                    if by_history:
                        run_s[j] = keys.mean_left_s(dist[j], 0.0)
                state[j] = WAITING
                large += ((1.0 if gang[j] > share * pool_gpus else 0.0) - large) / 100.0
                if policy == GITTINS:
                    key[j] = keys.gittins_s(dist[j], 0.0) * gang[j]
                elif policy == LEARNED:
                    spread[j] = spread_of(dist[j])
                    key[j] = learned_key(
                        j, gang, 0.0, False, 0, dist[j], spread[j], pool_gpus, theta, hidden
                    )
                elif policy == SRTF or policy == SRSF:
                    key[j] = left_key(policy, j, gang, run_s[j])
                else:
                    key[j] = key_of(
                        policy, j, now, submit, gang, run_s[j], 0.0, epoch, pool_gpus, dist[0]
                    )
                if n_queue == queue.shape[0]:
                    queue = np.concatenate((queue, np.empty_like(queue)))
                at = n_queue if dynamic else find(queue, n_queue, key, submit, tie, j)
                for i in range(n_queue, at, -1):
                    queue[i] = queue[i - 1]
                queue[at] = j
                n_queue += 1
                waiting_of[shape[j]] += 1
                if waiting_of[shape[j]] == 1:
                    n_shapes_waiting += 1
            if n_queue and news:
                ranked_at = now
            if now == t_again:
                again_at = NEVER
            if policy == LEARNED and n_queue and now >= context_at + CONTEXT_MS:
                context_at = now
                demand = 0.0
                service = 0.0
                for i in range(n_queue):
                    r = queue[i]
                    g = max(gang[r], LEAST_GPUS)
                    demand += g
                    service += (
                        math.log(keys.gittins_s(dist[r], kept[r] / 1000.0) + 1.0) + math.log(g)
                    ) / 10.0
                context[0] = math.log(1.0 + demand / pool_gpus)
                context[1] = used / pool_gpus
                context[2] = service / n_queue
                service = 0.0
                for k in range(n_running):
                    r = running[k]
                    attained = (kept[r] + now - started[r]) / 1000.0
                    service += (
                        math.log(keys.gittins_s(dist[r], attained) + 1.0)
                        + math.log(max(gang[r], LEAST_GPUS))
                    ) / 10.0
                    level_until[r] = 0
                context[3] = service / n_running if n_running else 0.0
                context_hidden(theta, context, hidden)
                for i in range(n_queue):
                    r = queue[i]
                    key[r] = learned_key(
                        r,
                        gang,
                        kept[r] / 1000.0,
                        False,
                        starts[r],
                        dist[r],
                        spread[r],
                        pool_gpus,
                        theta,
                        hidden,
                    )
                queue[:n_queue] = queue[:n_queue][
                    np.argsort(key[queue[:n_queue]], kind="mergesort")
                ]
            if n_queue == 0:
                first_change = NEVER
                round_due = NEVER
                continue
            if first_change == NEVER:
                first_change = now
            round_due = min(now + SETTLE_MS, first_change + SETTLE_MOST_MS)
            if round_due > now:
                continue
        # ---- a round ---------------------------------------------------------------------
        first_change = NEVER
        round_due = NEVER
        again_at = NEVER
        if n_queue == 0:
            continue
        rounds += 1
        if dynamic:
            for i in range(n_queue):
                j = queue[i]
                key[j] = key_of(
                    policy, j, ranked_at, submit, gang, run_s[j], 0.0, epoch, pool_gpus, dist[0]
                )
            # The line is kept by submission: a stable sort leaves equals in that order.
            line = queue[:n_queue][np.argsort(key[queue[:n_queue]], kind="mergesort")]
        else:
            line = queue[:n_queue].copy()
        if n_claims:
            front = 0
            ahead = np.empty(n_queue, np.int64)
            for i in range(n_queue):
                if claims[line[i]]:
                    ahead[front] = line[i]
                    front += 1
            for i in range(n_queue):
                if not claims[line[i]]:
                    ahead[front] = line[i]
                    front += 1
            line = ahead
        failed[:] = False
        may_evict = ranked and (share >= 1.0 or large < LARGE_MOST)
        hopeless[:] = not may_evict
        n_failed = 0
        n_kept = 0
        evictions = 0
        searches = 0
        n_hopeless = 0 if may_evict else n_shapes_waiting
        unfinished = False
        have_victims = False
        n_victims = 0
        victims = np.empty(0, np.int64)
        scores = np.empty(0, np.float64)
        spared = np.empty(0, np.bool_)
        green_score = np.empty(0, np.float64)
        green_until = np.empty(0, np.int64)
        n_green = 0
        waits_residency = NEVER
        evicted = np.empty(0, np.int64)
        n_started = 0
        head = False
        shadow = NEVER
        for i in range(line.shape[0]):
            j = line[i]
            s = shape[j]
            if failed[s] and (not ranked or hopeless[s]) and mode != EASY:
                if n_failed == n_shapes_waiting and (not ranked or n_hopeless == n_shapes_waiting):
                    break
                continue
            count = 0
            if head:
                # EASY behind its head: by the shadow anywhere, else off the head's nodes.
                if not failed[s] and not room(levels, workers[j], gpus[j]):
                    failed[s] = True
                    n_failed += 1
                    if n_failed == n_shapes_waiting:
                        break
                if failed[s]:
                    continue
                if shadow == NEVER or now + estimate[j] <= shadow:
                    count = place(free, levels, workers[j], gpus[j], nodes, shares)
                    for k in range(count):
                        if free2[nodes[k]] >= 0:
                            shift(free2, levels2, nodes[k], -shares[k])
                elif room(levels2, workers[j], gpus[j]):
                    count = place(free2, levels2, workers[j], gpus[j], nodes, shares)
                    for k in range(count):
                        shift(free, levels, nodes[k], -shares[k])
                else:
                    continue
            elif not failed[s] and room(levels, workers[j], gpus[j]):
                count = place(free, levels, workers[j], gpus[j], nodes, shares)
            if count:
                # ---- it starts -------------------------------------------------------------
                if n_open == 0:
                    more = alloc_count.shape[0]
                    alloc_node = np.concatenate((alloc_node, np.zeros_like(alloc_node)))
                    alloc_gpus = np.concatenate((alloc_gpus, np.zeros_like(alloc_gpus)))
                    alloc_count = np.concatenate((alloc_count, np.zeros_like(alloc_count)))
                    open_slots = np.concatenate((open_slots, np.zeros_like(open_slots)))
                    for k in range(more):
                        open_slots[k] = more + k
                    n_open = more
                n_open -= 1
                slot = open_slots[n_open]
                slot_of[j] = slot
                alloc_count[slot] = count
                for k in range(count):
                    alloc_node[slot, k] = nodes[k]
                    alloc_gpus[slot, k] = shares[k]
                state[j] = RUNNING
                used += gang[j]
                if first_start[j] < 0:
                    first_start[j] = now
                paid[j] = restart if starts[j] else 0
                starts[j] += 1
                started[j] = now
                level_until[j] = 0
                ends[j] = now + max(np.int64(0), duration[j] - kept[j]) + paid[j]
                if n_running == running.shape[0]:
                    running = np.concatenate((running, np.empty_like(running)))
                running[n_running] = j
                place_of[j] = n_running
                n_running += 1
                if n_heap == heap_t.shape[0]:
                    heap_t = np.concatenate((heap_t, np.empty_like(heap_t)))
                    heap_j = np.concatenate((heap_j, np.empty_like(heap_j)))
                n_heap = push(heap_t, heap_j, n_heap, ends[j], j)
                if claims[j]:
                    claims[j] = False
                    n_claims -= 1
                waiting_of[s] -= 1
                if waiting_of[s] == 0:
                    n_shapes_waiting -= 1
                    if failed[s]:
                        n_failed -= 1
                    if hopeless[s]:
                        n_hopeless -= 1
                n_started += 1
                continue
            # ---- it does not fit -----------------------------------------------------------
            if not failed[s]:
                failed[s] = True
                n_failed += 1
            if mode == STRICT:
                break
            if mode == EASY:
                head = True
                order = np.empty(n_running, np.int64)
                until = np.empty(n_running, np.int64)
                for k in range(n_running):
                    r = running[k]
                    length = max(np.int64(1), estimate[r])
                    while started[r] + length <= now:
                        length *= 2
                    until[k] = started[r] + length
                # Equal ends are released by job id: sort by it first, then stably by the end.
                by_tie = np.argsort(tie[running[:n_running]], kind="mergesort")
                order = by_tie[np.argsort(until[by_tie], kind="mergesort")]
                given = 0
                while given < n_running and not room(levels, workers[j], gpus[j]):
                    slot = slot_of[running[order[given]]]
                    for k in range(alloc_count[slot]):
                        shift(free, levels, alloc_node[slot, k], alloc_gpus[slot, k])
                    given += 1
                fits = room(levels, workers[j], gpus[j])
                count = 0
                if fits:
                    shadow = until[order[given - 1]] if given else now
                    count = place(free, levels, workers[j], gpus[j], nodes, shares)
                    for k in range(count):
                        shift(free, levels, nodes[k], shares[k])
                for g in range(given):
                    slot = slot_of[running[order[g]]]
                    for k in range(alloc_count[slot]):
                        shift(free, levels, alloc_node[slot, k], -alloc_gpus[slot, k])
                free2[:] = free
                levels2[:] = levels
                for k in range(count):
                    levels2[free2[nodes[k]]] -= 1
                    free2[nodes[k]] = -1
                if n_failed == n_shapes_waiting:
                    break
                continue
            if may_evict and not hopeless[s]:
                if evictions == EVICTIONS_PER_ROUND:
                    unfinished = True
                    continue
                if searches == SEARCHES_PER_ROUND:
                    continue
                own = -math.log(max(key[j], 1e-9)) if logs else -key[j]
                if not have_victims:
                    # ---- the running jobs, lowest score first; whoever comes later in this line
                    # ---- has a lower score, so those who lead nobody now are left out for all
                    have_victims = True
                    victims = np.empty(n_running, np.int64)
                    scores = np.empty(n_running, np.float64)
                    n_victims = 0
                    green_score = np.empty(n_running, np.float64)
                    green_until = np.empty(n_running, np.int64)
                    for k in range(n_running):
                        r = running[k]
                        if started[r] >= now:
                            continue
                        attained_ms = kept[r] + ranked_at - started[r]
                        if (stepwise) and ranked_at < level_until[r]:
                            value = level_key[r]
                        else:
                            attained = attained_ms / 1000.0
                            if policy == SRTF or policy == SRSF:
                                if by_history:
                                    left_s = keys.mean_left_s(dist[r], attained)
                                else:
                                    left_s = max(0.001, run_s[r] - attained)
                                value = left_key(policy, r, gang, left_s)
                            elif policy == GITTINS:
                                value = keys.gittins_s(dist[r], attained) * gang[r]
                            elif policy == LEARNED:
                                value = learned_key(
                                    r,
                                    gang,
                                    attained,
                                    True,
                                    starts[r] - 1,
                                    dist[r],
                                    spread[r],
                                    pool_gpus,
                                    theta,
                                    hidden,
                                )
                            else:
                                value = key_of(
                                    policy,
                                    r,
                                    ranked_at,
                                    submit,
                                    gang,
                                    run_s[r],
                                    attained,
                                    epoch,
                                    pool_gpus,
                                    dist[0],
                                )
                            if stepwise:
                                # The key is good until the attained time enters the next bin.
                                edge = keys.level_s(keys.bin_of(attained) + 1) * 1000.0
                                level_key[r] = value
                                level_until[r] = ranked_at + max(
                                    np.int64(1), np.int64(math.ceil(edge - attained_ms))
                                )
                        value = -math.log(max(value, 1e-9)) if logs else -value
                        if not (value + margin < own):
                            continue
                        if started[r] + max(residency, debt[r]) > now:
                            green_score[n_green] = value
                            green_until[n_green] = started[r] + max(residency, debt[r])
                            n_green += 1
                            continue
                        victims[n_victims] = r
                        scores[n_victims] = value
                        n_victims += 1
                    by_tie = np.argsort(tie[victims[:n_victims]], kind="mergesort")
                    order = by_tie[np.argsort(scores[:n_victims][by_tie], kind="mergesort")]
                    victims = victims[:n_victims][order]
                    scores = scores[:n_victims][order]
                    spared = np.ones(n_victims, np.bool_)
                searches += 1
                given = 0
                batch = 1
                at = 0
                fits = False
                chosen = np.empty(n_victims, np.int64)
                while not fits:
                    while given < batch and at < n_victims and scores[at] + margin < own:
                        if spared[at]:
                            r = victims[at]
                            slot = slot_of[r]
                            for k in range(alloc_count[slot]):
                                shift(free, levels, alloc_node[slot, k], alloc_gpus[slot, k])
                            chosen[given] = at
                            given += 1
                        at += 1
                    fits = room(levels, workers[j], gpus[j])
                    if given < batch:
                        break
                    batch = 2 * given + 1
                needed = 0
                if given and fits:
                    for g in range(given - 1, -1, -1):
                        slot = slot_of[victims[chosen[g]]]
                        for k in range(alloc_count[slot]):
                            shift(free, levels, alloc_node[slot, k], -alloc_gpus[slot, k])
                        if not room(levels, workers[j], gpus[j]):
                            for k in range(alloc_count[slot]):
                                shift(free, levels, alloc_node[slot, k], alloc_gpus[slot, k])
                            chosen[given - 1 - needed] = chosen[g]
                            needed += 1
                    # The needed ones are at the end of `chosen`, the dearest last.
                    count = place(free, levels, workers[j], gpus[j], nodes, shares)
                    for k in range(count):
                        shift(free, levels, nodes[k], shares[k])
                    for g in range(given - needed, given):
                        v = chosen[g]
                        slot = slot_of[victims[v]]
                        spared[v] = False
                        for k in range(alloc_count[slot]):
                            shift(free, levels, alloc_node[slot, k], -alloc_gpus[slot, k])
                        evicted = np.append(evicted, victims[v])
                    for k in range(count):
                        here = min(shares[k], free[nodes[k]])
                        if here:
                            shift(free, levels, nodes[k], -here)
                            kept_node[n_kept] = nodes[k]
                            kept_gpus[n_kept] = here
                            n_kept += 1
                    evictions += 1
                    claims[j] = True
                    n_claims += 1
                else:
                    for g in range(given):
                        slot = slot_of[victims[chosen[g]]]
                        for k in range(alloc_count[slot]):
                            shift(free, levels, alloc_node[slot, k], -alloc_gpus[slot, k])
                    for k in range(n_green):
                        if green_score[k] + margin < own:
                            waits_residency = min(waits_residency, green_until[k])
                    for k in range(dearer.shape[0]):
                        if dearer[s, k] and not hopeless[k]:
                            hopeless[k] = True
                            if waiting_of[k]:
                                n_hopeless += 1
                    for k in range(dearer.shape[0]):
                        if dearer[s, k] and not failed[k]:
                            failed[k] = True
                            if waiting_of[k]:
                                n_failed += 1
        # ---- the round's end ---------------------------------------------------------------
        for k in range(n_kept):
            shift(free, levels, kept_node[k], kept_gpus[k])
        if n_started:
            left = 0
            for i in range(n_queue):
                if state[queue[i]] == WAITING:
                    queue[left] = queue[i]
                    left += 1
            n_queue = left
        for e in range(evicted.shape[0]):
            r = evicted[e]
            preemptions += 1
            slot = slot_of[r]
            for k in range(alloc_count[slot]):
                shift(free, levels, alloc_node[slot, k], alloc_gpus[slot, k])
            open_slots[n_open] = slot
            n_open += 1
            last = running[n_running - 1]
            running[place_of[r]] = last
            place_of[last] = place_of[r]
            n_running -= 1
            used -= gang[r]
            worked = max(np.int64(0), now - started[r] - paid[r])
            saved = worked // interval * interval if interval else np.int64(0)
            lost[r] += now - started[r] - saved
            held[r] += now - started[r]
            kept[r] += saved
            debt[r] = worked - saved + restart
            ends[r] = -1
            state[r] = WAITING
            attained = kept[r] / 1000.0
            if policy == GITTINS:
                key[r] = keys.gittins_s(dist[r], attained) * gang[r]
            elif policy == LEARNED:
                key[r] = learned_key(
                    r,
                    gang,
                    attained,
                    False,
                    starts[r],
                    dist[r],
                    spread[r],
                    pool_gpus,
                    theta,
                    hidden,
                )
            elif policy == SRTF or policy == SRSF:
                if by_history:
                    left_s = keys.mean_left_s(dist[r], attained)
                else:
                    left_s = max(0.001, run_s[r] - attained)
                key[r] = left_key(policy, r, gang, left_s)
            else:
                key[r] = key_of(
                    policy, r, now, submit, gang, run_s[r], attained, epoch, pool_gpus, dist[0]
                )
            if n_queue == queue.shape[0]:
                queue = np.concatenate((queue, np.empty_like(queue)))
            at = find(queue, n_queue, key, submit, tie, r)
            for i in range(n_queue, at, -1):
                queue[i] = queue[i - 1]
            queue[at] = r
            n_queue += 1
            waiting_of[shape[r]] += 1
            if waiting_of[shape[r]] == 1:
                n_shapes_waiting += 1
        if ranked and n_queue and (n_started or evicted.shape[0] or unfinished):
            ranked_at = now
            first_change = now
            round_due = now + SETTLE_MS
        if waits_residency < NEVER:
            again_at = waits_residency
    return first_start, ends, starts, held, lost, busy, rounds, preemptions
