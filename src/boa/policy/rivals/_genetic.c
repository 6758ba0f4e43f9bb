/* The genetic search of genetic.py for machines that have a C compiler.
 *
 * The total of all jobs' costs 1 / (speedup + 0.001) is a sum over rows, so a change to one row
 * changes one term. A state therefore carries each job's cost, the GPUs free on each node and the
 * nodes that have a distributed job, and every operator keeps them right: states are feasible at
 * every moment, and no row is priced twice.
 */
#include "_genetic_state.h"

/* Collect free GPUs from the emptiest nodes without a distributed job, as many as there are. */
static Shape gather(Run *r, const State *t, int64_t most_open, int64_t gpus, uint8_t *row) {
    int64_t left = gpus, nodes_left = r->s.max_nodes, nodes = r->s.nodes, first = 0;
    int64_t start = draw(r, nodes), count = list_free(t, whole_lanes(r), row, r->free_nodes);
    const uint8_t *open = t->open;
    const int32_t *free_nodes = r->free_nodes;
    Shape found = {0, 0, 0};
    memset(row, 0, (size_t)nodes);
    while (first < count && free_nodes[first] < start) first++;
    if (first == count) first = 0;
    for (int64_t level = most_open; level > 0 && left > 0 && nodes_left > 0; level--)
        for (int64_t i = 0, at = first; i < count && left > 0 && nodes_left > 0;
             i++, at = after(at, count)) {
            int32_t n = free_nodes[at];
            if (open[n] != level) continue;
            row[n] = (uint8_t)least_of(level, left);
            found = (Shape){found.gpus + row[n], found.spread + 1, n};
            left -= row[n];
            nodes_left--;
        }
    return found;
}

/* The fullest node that still has room; of equals the first from here on. */
static int64_t fullest(const Run *r, const State *t, int64_t gpus, int64_t n) {
    int64_t nodes = r->s.nodes, found = NOBODY;
    for (int64_t i = 0; i < nodes; i++, n = after(n, nodes)) {
        if (t->open[n] == gpus) return n;
        if (t->open[n] > gpus && (found == NOBODY || t->open[n] < t->open[found])) found = n;
    }
    return found;
}

/* Could a job gain at all if it got all these GPUs besides its own? Cheap, and mostly no. */
static int may_gain(const Run *r, const State *t, int64_t j, int64_t open) {
    double cost = t->cost[j];
    int64_t gpus = t->gpus[j] + open;
    if (cost <= r->floor[j]) return 0;
    return lowest_cost(r, j, 0, least_of(r->s.largest, gpus)) < cost ||
           lowest_cost(r, j, 1, gpus) < cost || (r->s.at_home[j] < cost && is_changed(r, t, j));
}

/* A job's best response to all others: its old row, its current one, one node, or many nodes.
 * Mostly it is the old one, so a job is taken off its GPUs only when there is something better.
 * `room`: what there is besides its own. Whether it has changed anything. */
static int respond(Run *r, State *t, int64_t j, int64_t limit, Room room) {
    double cost = t->cost[j];
    Room all = room_without(r, t, j, room);
    int64_t on_one = least_of(all.most, limit), on_many = least_of(all.reach, limit);
    int home = r->s.at_home[j] < cost && is_home_free(r, t, j, all);
    if (home) cost = r->s.at_home[j];
    int64_t one = lowest_cost(r, j, 0, on_one) < cost ? best_count(r, j, 0, on_one) : 0;
    if (one) cost = lowest_cost(r, j, 0, on_one);
    int64_t many = lowest_cost(r, j, 1, on_many) < cost ? best_count(r, j, 1, on_many) : 0;
    if (!home && !one && many <= all.most) return 0;
    Shape chosen = home ? r->home[j] : shape_of(t, j);
    const uint8_t *row = home ? current_of(r, j) : r->old;
    if (!home && !one) memcpy(r->old, row_of(r, t, j), (size_t)r->s.nodes);
    vacate(r, t, j);
    if (one) chosen = (Shape){(int32_t)one, 1, (int32_t)fullest(r, t, one, draw(r, r->s.nodes))};
    if (many > all.most) {
        Shape found = gather(r, t, all.most, many, r->cut);
        int64_t used = best_count(r, j, 1, found.gpus);
        if (used > all.most && lowest_cost(r, j, 1, found.gpus) < cost) {
            if (used < found.gpus) found = gather(r, t, all.most, used, r->cut);
            chosen = found;
            row = r->cut;
        }
    }
    put(r, t, j, chosen, row);
    return 1;
}

/* Leave free GPUs to nobody who could use them: first to those who have none, in fair shares. */
static void fill(Run *r, State *t) {
    int64_t open = 0, idle = 0, jobs = r->s.jobs;
    for (int64_t n = 0; n < r->s.nodes; n++) open += t->open[n];
    for (int64_t j = 0; j < jobs; j++) idle += t->gpus[j] == 0;
    int64_t share = idle ? (open + idle - 1) / idle : 0, j = draw(r, jobs);
    Room room = room_of(t->open, t->shared, whole_lanes(r));
    for (int64_t i = 0; idle && open && i < jobs; i++, j = after(j, jobs)) {
        if (t->gpus[j] || !respond(r, t, j, share, room)) continue;
        open -= t->gpus[j];
        room = room_of(t->open, t->shared, whole_lanes(r));
    }
    for (int64_t i = 0; open > 0 && i < jobs; i++, j = after(j, jobs)) {
        int64_t held = t->gpus[j];
        if (!may_gain(r, t, j, open) || !respond(r, t, j, r->s.most[j], room)) continue;
        open += held - t->gpus[j];
        room = room_of(t->open, t->shared, whole_lanes(r));
    }
}

/* Take GPUs of one node from a job, which becomes a victim; less than its least is nothing. */
static void rob(Run *r, State *t, int64_t j, int64_t n, int64_t gpus) {
    uint8_t *row = row_of(r, t, j);
    int64_t kept = t->gpus[j] - gpus;
    if (kept == 0 || kept < r->s.least[j]) {
        if (kept) draw(r, r->s.nodes); /* as a repair that kept nothing would */
        vacate(r, t, j);
    } else if (gpus < row[n]) {
        row[n] = (uint8_t)(row[n] - gpus);
        t->open[n] = (uint8_t)(t->open[n] + gpus);
        t->gpus[j] = (int32_t)kept;
    } else {
        memcpy(r->old, row, (size_t)r->s.nodes);
        vacate(r, t, j);
        r->old[n] = 0;
        seat(r, t, j, measured(r->old, whole_lanes(r)), r->old);
    }
    price(r, t, j);
    for (int64_t v = 0; v < r->victim_count; v++)
        if (r->victims[v] == j) return;
    r->victims[r->victim_count++] = (int32_t)j;
}

/* Of a few random jobs the one in most need of GPUs, or the one in least. */
static int64_t extreme(Run *r, const State *t, int needy) {
    int64_t found = draw(r, r->s.jobs);
    for (int i = 1; i < 4; i++) {
        int64_t j = draw(r, r->s.jobs);
        if (needy ? t->cost[j] > t->cost[found] : t->cost[j] < t->cost[found]) found = j;
    }
    return found;
}

/* Give a job this row at the expense of whoever is in the way. */
static void seize(Run *r, State *t, int64_t j, Shape shape, const uint8_t *wanted) {
    int64_t jobs = r->s.jobs, first = shape.spread == 1 ? shape.node : 0;
    int64_t end = shape.spread == 1 ? first + 1 : r->s.nodes;
    r->victim_count = 0;
    lift(r, t, j);
    for (int64_t n = first; n < end; n++) {
        if (wanted[n] == 0) continue;
        for (int64_t i = 0; shape.spread > 1 && t->shared[n]; i++)
            if (t->spread[i] > 1 && row_of(r, t, i)[n]) rob(r, t, i, n, row_of(r, t, i)[n]);
        int64_t other = extreme(r, t, 0);
        for (; t->open[n] < wanted[n]; other = after(other, jobs)) {
            int64_t held = row_of(r, t, other)[n];
            if (held) rob(r, t, other, n, least_of(held, wanted[n] - t->open[n]));
        }
    }
    put(r, t, j, shape, wanted);
    for (int64_t v = 0; v < r->victim_count; v++)
        respond(r, t, r->victims[v], r->s.most[r->victims[v]],
                room_of(t->open, t->shared, whole_lanes(r)));
}

/* Back to where the job is now. */
static void reset(Run *r, State *t, int64_t j) {
    if (r->s.at_home[j] < INFINITY && is_changed(r, t, j))
        seize(r, t, j, r->home[j], current_of(r, j));
}

/* A size worth trying: a little more or less, half or double, whole nodes, or anything. */
static int64_t some_size(Run *r, const State *t, int64_t j, int64_t n) {
    int64_t now = t->gpus[j], whole = r->s.capacity[n] ? r->s.capacity[n] : 1;
    switch (draw(r, 8)) {
        case 0: case 1: return now + 1;
        case 2: return now - 1;
        case 3: return now * 2;
        case 4: return now / 2;
        case 5: return (now / whole + 1) * whole;
        case 6: return (now - 1) / whole * whole;
        default: return 1 + draw(r, r->s.most[j]);
    }
}

/* Another size for a job, on as few nodes as hold it, its own nodes first. */
static void resize(Run *r, State *t, int64_t j) {
    const uint8_t *row = row_of(r, t, j);
    int64_t nodes = r->s.nodes, n = draw(r, nodes), nodes_left = r->s.max_nodes;
    int64_t near = draw(r, 2) ? j : extreme(r, t, 0);
    if (t->gpus[near] && draw(r, 4)) {
        if (t->spread[near] == 1) n = t->node[near];
        while (row_of(r, t, near)[n] == 0) n = after(n, nodes);
    }
    int64_t least = r->s.least[j] > 1 ? r->s.least[j] : 1, size = some_size(r, t, j, n);
    size = least_of(size < least ? least : size, r->s.most[j]);
    if (size < least) return;
    uint8_t *wanted = r->wanted;
    const uint8_t *capacity = r->s.capacity;
    memset(wanted, 0, (size_t)nodes);
    Shape shape = {0, 0, 0};
    for (int own = 1; own >= 0; own--)
        for (int64_t i = 0, m = n; i < nodes && shape.gpus < size && nodes_left;
             i++, m = after(m, nodes)) {
            if (own && !(row[m] || m == n)) continue;
            if (wanted[m] || capacity[m] == 0) continue;
            wanted[m] = (uint8_t)least_of(size - shape.gpus, capacity[m]);
            shape = (Shape){shape.gpus + wanted[m], shape.spread + 1, (int32_t)m};
            nodes_left--;
        }
    if (shape.gpus >= least) seize(r, t, j, shape, r->wanted);
}

/* Two jobs change places. */
static void swap_jobs(Run *r, State *t, int64_t a, int64_t b) {
    Shape of_a = shape_of(t, a), of_b = shape_of(t, b);
    if (a == b || of_a.gpus > r->s.most[b] || of_b.gpus > r->s.most[a]) return;
    if ((of_a.gpus && of_a.gpus < r->s.least[b]) || (of_b.gpus && of_b.gpus < r->s.least[a])) return;
    memcpy(r->old, row_of(r, t, a), (size_t)r->s.nodes);
    memcpy(r->wanted, row_of(r, t, b), (size_t)r->s.nodes);
    vacate(r, t, a);
    vacate(r, t, b);
    put(r, t, a, of_b, r->wanted);
    put(r, t, b, of_a, r->old);
}

static void swap_nodes(Run *r, State *t, int64_t a, int64_t b) {
    uint8_t open = t->open[a], shared = t->shared[a];
    t->open[a] = t->open[b], t->open[b] = open;
    t->shared[a] = t->shared[b], t->shared[b] = shared;
    for (int64_t j = 0; j < r->s.jobs; j++) {
        uint8_t *row = row_of(r, t, j), held = row[a];
        if (held == row[b]) continue;
        row[a] = row[b], row[b] = held;
        if (t->spread[j] == 1) t->node[j] = (int32_t)(held ? b : a);
        price(r, t, j);
    }
}

/* Rename nodes of equal capacity so that this job is where it is now. */
static void align(Run *r, State *t, int64_t j) {
    const uint8_t *row = row_of(r, t, j), *goal = current_of(r, j);
    if (t->spread[j] == 0 || !is_changed(r, t, j)) return;
    for (int64_t n = 0; n < r->s.nodes; n++) {
        if (goal[n] == 0 || row[n] == goal[n]) continue;
        for (int64_t m = 0; m < r->s.nodes; m++) {
            if (row[m] != goal[n] || goal[m] == row[m]) continue;
            if (r->s.capacity[m] != r->s.capacity[n]) continue;
            swap_nodes(r, t, n, m);
            break;
        }
    }
}

static void mutate(Run *r, State *t) {
    do {
        int64_t j = draw(r, 2) ? extreme(r, t, 1) : (int64_t)draw(r, r->s.jobs);
        switch (draw(r, 12)) {
            case 0: case 1: case 2: reset(r, t, j); break;
            case 3: lift(r, t, j); break;
            case 4: swap_jobs(r, t, j, draw(r, r->s.jobs)); break;
            case 5: case 6: align(r, t, j); break;
            default: resize(r, t, j);
        }
    } while (draw(r, 5) == 0);
    fill(r, t);
}

/* One-point crossover over jobs: the head of one parent, and what fits of the tail of another. */
static void cross(Run *r, State *child, const State *mother, const State *father) {
    int64_t jobs = r->s.jobs, point = draw(r, jobs);
    memcpy(child->cost, mother->cost, r->bytes);
    r->victim_count = 0;
    for (int64_t j = point; j < jobs; j++) {
        const uint8_t *mine = row_of(r, child, j), *other = row_of(r, father, j);
        if (same_row(r, shape_of(child, j), mine, shape_of(father, j), other)) continue;
        r->victims[r->victim_count++] = (int32_t)j;
        lift(r, child, j);
    }
    for (int64_t v = 0; v < r->victim_count; v++) {
        int64_t j = r->victims[v];
        admit(r, child, j, shape_of(father, j), row_of(r, father, j));
    }
}

/* By falling fitness; of equals the younger, so that the search drifts along plateaus. */
static int by_total(const void *a, const void *b) {
    const State *x = *(State *const *)a, *y = *(State *const *)b;
    if (x->total != y->total) return x->total < y->total ? -1 : 1;
    return x->born > y->born ? -1 : 1;
}

/* The first of each total survives: equal totals are equal up to nodes' names. `parents` of the
 * states survived before; `spare`: room for all. */
static int64_t survive(State **states, int64_t parents, int64_t count, int64_t size,
                       State **spare) {
    int64_t kept = 0, dead = count, end = parents, p = 0, c = parents;
    double worst = parents == size ? states[size - 1]->total : INFINITY;
    for (int64_t i = parents; i < count; i++) { /* a child below all parents need not be sorted */
        State *child = states[i];
        if (child->total > worst) continue;
        states[i] = states[end], states[end++] = child;
    }
    qsort(states + parents, (size_t)(end - parents), sizeof *states, by_total);
    for (int64_t i = end; i < count; i++) spare[--dead] = states[i];
    while (p < parents || c < end) {
        int child = p == parents || (c < end && by_total(&states[c], &states[p]) < 0);
        State *next = states[child ? c++ : p++];
        if (kept == size || (kept && next->total == spare[kept - 1]->total))
            spare[--dead] = next;
        else
            spare[kept++] = next;
    }
    memcpy(states, spare, sizeof *states * (size_t)count);
    return kept;
}

static const State *pick(Run *r, State **states, int64_t count) {
    int64_t a = draw(r, count), b = draw(r, count);
    return states[a < b ? a : b]; /* they are sorted */
}

static void breed(Run *r, State **states, int64_t parents, State *child) {
    const State *mother = pick(r, states, parents);
    if (draw(r, 8))
        cross(r, child, mother, pick(r, states, parents));
    else
        memcpy(child->cost, mother->cost, r->bytes);
    mutate(r, child);
    sum_up(r, child);
}

static int64_t search(Run *r, State **states, const uint8_t *warm, int64_t count, int64_t size,
                      int64_t generations, int64_t patience, State **spare) {
    int64_t cells = r->s.jobs * r->s.nodes, alive = 0;
    load(r, states[alive++], r->s.current);
    for (int64_t i = 0; i < count; i++) load(r, states[alive++], warm + i * cells);
    for (int64_t i = 0; i < alive; i++) fill(r, states[i]), sum_up(r, states[i]);
    int64_t loaded = alive;
    for (; alive < size; alive++) {
        memcpy(states[alive]->cost, states[draw(r, loaded)]->cost, r->bytes);
        mutate(r, states[alive]);
        sum_up(r, states[alive]);
    }
    alive = survive(states, 0, alive, size, spare);
    double record = states[0]->total;
    for (int64_t g = 0, waited = 0; g < generations && waited < patience; g++, waited++) {
        for (int64_t i = 0; i < size; i++) breed(r, states, alive, states[alive + i]);
        alive = survive(states, alive, alive + size, size, spare);
        if (states[0]->total < record * (1.0 - 1e-7)) waited = -1;
        record = states[0]->total < record ? states[0]->total : record;
    }
    return alive;
}

/* What of every job stays the same through a search. */
static void look_over(Run *r) {
    for (int64_t j = 0; j < r->s.jobs; j++) {
        r->home[j] = measured(current_of(r, j), whole_lanes(r));
        double floor = r->s.at_home[j];
        for (int across = 0; across < 2; across++)
            for (int64_t gpus = 0; gpus <= r->s.most[j]; gpus++) {
                double cost = cost_with(r, j, across, 1, best_count(r, j, across, gpus));
                r->lowest[(j * 2 + across) * r->s.width + gpus] = cost;
                floor = cost < floor ? cost : floor;
            }
        r->floor[j] = floor;
    }
}

/* Writes the last population to `found` (room for `size` states), best first; how many, or -1. */
int64_t boa_evolve(const Search *s, const uint8_t *warm, int64_t count, int64_t size,
                   int64_t generations, int64_t patience, uint64_t seed, uint8_t *found) {
    Run run = {.s = *s, .random = seed};
    size_t jobs = (size_t)s->jobs, nodes = (size_t)s->nodes;
    size_t both = (size_t)(size + (count < size ? size : count + 1)); /* parents and children */
    run.bytes = (jobs * 20 + nodes * 2 + jobs * nodes + 63) / 64 * 64;
    uint8_t *blocks = malloc(run.bytes * both), *rows = malloc(nodes * 3);
    State *states = malloc(sizeof *states * both), **order = malloc(sizeof *order * both * 2);
    run.victims = malloc(sizeof *run.victims * jobs);
    run.home = malloc(sizeof *run.home * jobs);
    run.floor = malloc(sizeof *run.floor * jobs);
    run.lowest = malloc(sizeof *run.lowest * jobs * 2 * (size_t)s->width);
    run.free_nodes = malloc(sizeof *run.free_nodes * nodes);
    int64_t alive = -1;
    if (blocks && rows && states && order && run.victims && run.home && run.floor &&
        run.lowest && run.free_nodes) {
        run.old = rows, run.wanted = rows + nodes, run.cut = rows + 2 * nodes;
        look_over(&run);
        for (size_t i = 0; i < both; i++) {
            lay_out(&run, &states[i], blocks + i * run.bytes);
            order[i] = &states[i];
        }
        alive = search(&run, order, warm, count, size, generations, patience,
                       order + both);
        for (int64_t i = 0; i < alive; i++)
            memcpy(found + (size_t)i * jobs * nodes, order[i]->cells, jobs * nodes);
    }
    free(blocks), free(rows), free(states), free(order);
    free(run.victims), free(run.home), free(run.floor), free(run.lowest);
    free(run.free_nodes);
    return alive;
}
