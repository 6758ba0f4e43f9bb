/* The genetic search of genetic.py for machines that have a C compiler.
 *
 * The total of all jobs' costs 1 / (speedup + 0.001) is a sum over rows, so a change to one row
 * changes one term. A state therefore carries each job's cost, the GPUs free on each node and the
 * nodes that have a distributed job, and every operator keeps them right: states are feasible at
 * every moment, and no row is priced twice.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NOBODY (-1)

typedef struct {
    int64_t jobs, nodes, width, max_nodes, largest; /* largest: GPUs of the largest node */
    const double *costs;     /* jobs × across nodes × changed × width */
    const double *at_home;   /* jobs: cost of the current row, infinite if it is not allowed */
    const int32_t *best;     /* jobs × across nodes × width: the fastest count up to this one */
    const int32_t *most;     /* jobs */
    const int32_t *least;    /* jobs */
    const uint8_t *current;  /* jobs × nodes */
    const uint8_t *capacity; /* nodes */
} Search;

typedef struct {
    double total;
    int64_t born;
    double *cost; /* the beginning of the one block that holds all arrays */
    int32_t *gpus, *spread;
    uint8_t *open;   /* free GPUs of each node */
    uint8_t *shared; /* has the node a distributed job? */
    uint8_t *cells;
} State;

typedef struct {
    Search s;
    uint64_t random;
    size_t bytes;
    uint8_t *old, *wanted, *cut; /* rows */
    int32_t *victims;            /* jobs that lost GPUs to another and may look for new ones */
    int64_t victim_count, births;
} Run;

/* Splitmix64: small, fast, and good enough to pick operators. */
static uint32_t draw(Run *r, int64_t below) {
    uint64_t z = (r->random += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (uint32_t)((((z ^ (z >> 31)) >> 32) * (uint64_t)below) >> 32);
}

static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }

/* The next of this many in a ring: a walk from a random start favours nobody. */
static int64_t after(int64_t i, int64_t count) { return i + 1 < count ? i + 1 : 0; }

static double cost_with(const Run *r, int64_t j, int across, int changed, int64_t gpus) {
    return r->s.costs[((j * 2 + across) * 2 + changed) * r->s.width + gpus];
}

static int32_t best_count(const Run *r, int64_t j, int across, int64_t gpus) {
    return r->s.best[(j * 2 + across) * r->s.width + least_of(gpus, r->s.most[j])];
}

static uint8_t *row_of(const Run *r, const State *t, int64_t j) {
    return t->cells + j * r->s.nodes;
}

static const uint8_t *current_of(const Run *r, int64_t j) {
    return r->s.current + j * r->s.nodes;
}

static int is_changed(const Run *r, const State *t, int64_t j) {
    return memcmp(row_of(r, t, j), current_of(r, j), (size_t)r->s.nodes) != 0;
}

static void price(const Run *r, State *t, int64_t j) {
    t->cost[j] = cost_with(r, j, t->spread[j] > 1, is_changed(r, t, j), t->gpus[j]);
}

/* Take all of a job's GPUs away. */
static void lift(const Run *r, State *t, int64_t j) {
    uint8_t *restrict row = row_of(r, t, j), *restrict open = t->open, *restrict shared = t->shared;
    if (t->gpus[j] == 0) return;
    for (int64_t n = 0; n < r->s.nodes; n++) open[n] = (uint8_t)(open[n] + row[n]);
    if (t->spread[j] > 1)
        for (int64_t n = 0; n < r->s.nodes; n++) shared[n] = (uint8_t)(shared[n] & (row[n] == 0));
    memset(row, 0, (size_t)r->s.nodes);
    t->gpus[j] = t->spread[j] = 0;
    price(r, t, j);
}

/* Give a job that has nothing a row that fits. */
static void put(const Run *r, State *t, int64_t j, const uint8_t *restrict row) {
    uint8_t *restrict open = t->open, *restrict shared = t->shared;
    uint16_t gpus = 0, spread = 0;
    memcpy(row_of(r, t, j), row, (size_t)r->s.nodes);
    for (int64_t n = 0; n < r->s.nodes; n++) {
        open[n] = (uint8_t)(open[n] - row[n]);
        gpus = (uint16_t)(gpus + row[n]);
        spread = (uint16_t)(spread + (row[n] > 0));
    }
    if (spread > 1)
        for (int64_t n = 0; n < r->s.nodes; n++) shared[n] = (uint8_t)(shared[n] | (row[n] > 0));
    t->gpus[j] = gpus;
    t->spread[j] = spread;
    price(r, t, j);
}

/* Would a row fit into the free GPUs beside the distributed jobs? Sets how many nodes it has. */
static int fits(const Run *r, const State *t, int64_t j, const uint8_t *restrict row,
                int64_t *nodes) {
    const uint8_t *restrict open = t->open, *restrict shared = t->shared;
    uint16_t gpus = 0, spread = 0;
    uint8_t over = 0, clash = 0;
    for (int64_t n = 0; n < r->s.nodes; n++) {
        over = (uint8_t)(over | (row[n] > open[n]));
        clash = (uint8_t)(clash | ((row[n] > 0) & shared[n]));
        gpus = (uint16_t)(gpus + row[n]);
        spread = (uint16_t)(spread + (row[n] > 0));
    }
    *nodes = spread;
    return !over && gpus >= r->s.least[j] && gpus <= r->s.most[j] &&
           (spread <= 1 || (!clash && spread <= r->s.max_nodes));
}

/* Repair: give a job that has nothing as much of a row as every limit allows. */
static void admit(Run *r, State *t, int64_t j, const uint8_t *row) {
    int64_t spread, left = r->s.most[j], nodes_left = r->s.max_nodes, nodes = r->s.nodes;
    int whole = fits(r, t, j, row, &spread);
    if (spread == 0) return;
    if (whole) {
        put(r, t, j, row);
        return;
    }
    memset(r->cut, 0, (size_t)nodes);
    int64_t n = draw(r, nodes);
    for (int64_t i = 0; i < nodes; i++, n = after(n, nodes)) {
        if (row[n] == 0 || nodes_left == 0 || (spread > 1 && t->shared[n])) continue;
        int64_t kept = least_of(least_of(row[n], t->open[n]), left);
        r->cut[n] = (uint8_t)kept;
        left -= kept;
        nodes_left -= kept > 0;
    }
    if (r->s.most[j] - left >= r->s.least[j]) put(r, t, j, r->cut);
}

/* Collect free GPUs from the emptiest nodes without a distributed job; how many were found. */
static int64_t gather(Run *r, const State *t, int64_t most_open, int64_t gpus, uint8_t *row) {
    int64_t left = gpus, nodes_left = r->s.max_nodes, nodes = r->s.nodes;
    int64_t start = draw(r, nodes);
    memset(row, 0, (size_t)nodes);
    for (int64_t level = most_open; level > 0 && left > 0; level--)
        for (int64_t i = 0, n = start; i < nodes && left > 0; i++, n = after(n, nodes)) {
            if (t->open[n] != level || t->shared[n] || nodes_left == 0) continue;
            row[n] = (uint8_t)least_of(level, left);
            left -= row[n];
            nodes_left--;
        }
    return gpus - left;
}

/* The fullest node that still has room. */
static void fit_one(Run *r, const State *t, int64_t gpus, uint8_t *row) {
    int64_t nodes = r->s.nodes, n = draw(r, nodes), found = NOBODY;
    for (int64_t i = 0; i < nodes; i++, n = after(n, nodes))
        if (t->open[n] >= gpus && (found == NOBODY || t->open[n] < t->open[found])) found = n;
    memset(row, 0, (size_t)nodes);
    row[found] = (uint8_t)gpus;
}

/* Could a job gain at all if it got all these GPUs besides its own? Cheap, and mostly no. */
static int may_gain(const Run *r, const State *t, int64_t j, int64_t open) {
    int64_t one = best_count(r, j, 0, least_of(r->s.largest, t->gpus[j] + open));
    int64_t many = best_count(r, j, 1, t->gpus[j] + open);
    return cost_with(r, j, 0, 1, one) < t->cost[j] || cost_with(r, j, 1, 1, many) < t->cost[j] ||
           (is_changed(r, t, j) && r->s.at_home[j] < t->cost[j]);
}

/* A job's best response to all others: its old row, its current one, one node, or many nodes. */
static void respond(Run *r, State *t, int64_t j, int64_t limit) {
    int64_t spread;
    uint8_t most_open = 0;
    uint16_t reach = 0;
    double cost = t->cost[j];
    memcpy(r->old, row_of(r, t, j), (size_t)r->s.nodes);
    const uint8_t *chosen = r->old, *home = current_of(r, j);
    lift(r, t, j);
    for (int64_t n = 0; n < r->s.nodes; n++) {
        most_open = t->open[n] > most_open ? t->open[n] : most_open;
        reach = (uint16_t)(reach + (t->shared[n] ? 0 : t->open[n]));
    }
    if (r->s.at_home[j] < cost && fits(r, t, j, home, &spread)) {
        cost = r->s.at_home[j];
        chosen = home;
    }
    int64_t one = best_count(r, j, 0, least_of(most_open, limit));
    if (cost_with(r, j, 0, 1, one) < cost && one > 0) {
        cost = cost_with(r, j, 0, 1, one);
        fit_one(r, t, one, r->wanted);
        chosen = r->wanted;
    }
    int64_t many = best_count(r, j, 1, least_of(reach, limit));
    if (many > most_open && cost_with(r, j, 1, 1, many) < cost) {
        int64_t found = gather(r, t, most_open, many, r->cut);
        int64_t used = best_count(r, j, 1, found);
        if (used > most_open && cost_with(r, j, 1, 1, used) < cost) {
            if (used < found) gather(r, t, most_open, used, r->cut);
            chosen = r->cut;
        }
    }
    put(r, t, j, chosen);
}

/* Leave free GPUs to nobody who could use them: first to those who have none, in fair shares. */
static void fill(Run *r, State *t) {
    int64_t open = 0, idle = 0, jobs = r->s.jobs;
    for (int64_t n = 0; n < r->s.nodes; n++) open += t->open[n];
    for (int64_t j = 0; j < jobs; j++) idle += t->gpus[j] == 0;
    int64_t share = idle ? (open + idle - 1) / idle : 0, j = draw(r, jobs);
    for (int64_t i = 0; idle && open && i < jobs; i++, j = after(j, jobs)) {
        if (t->gpus[j]) continue;
        respond(r, t, j, share);
        open -= t->gpus[j];
    }
    for (int64_t i = 0; open > 0 && i < jobs; i++, j = after(j, jobs)) {
        if (!may_gain(r, t, j, open)) continue;
        open += t->gpus[j];
        respond(r, t, j, r->s.most[j]);
        open -= t->gpus[j];
    }
}

/* Take GPUs of one node from a job, which becomes a victim. */
static void rob(Run *r, State *t, int64_t j, int64_t n, int64_t gpus) {
    memcpy(r->old, row_of(r, t, j), (size_t)r->s.nodes);
    lift(r, t, j);
    r->old[n] = (uint8_t)(r->old[n] - gpus);
    admit(r, t, j, r->old);
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

/* Give a job this row (in `wanted`) at the expense of whoever is in the way. */
static void seize(Run *r, State *t, int64_t j) {
    int64_t spread = 0, jobs = r->s.jobs;
    r->victim_count = 0;
    lift(r, t, j);
    for (int64_t n = 0; n < r->s.nodes; n++) spread += r->wanted[n] > 0;
    for (int64_t n = 0; n < r->s.nodes; n++) {
        if (r->wanted[n] == 0) continue;
        for (int64_t i = 0; spread > 1 && t->shared[n]; i++)
            if (t->spread[i] > 1 && row_of(r, t, i)[n]) rob(r, t, i, n, row_of(r, t, i)[n]);
        int64_t other = extreme(r, t, 0);
        for (; t->open[n] < r->wanted[n]; other = after(other, jobs)) {
            int64_t held = row_of(r, t, other)[n];
            if (held) rob(r, t, other, n, least_of(held, r->wanted[n] - t->open[n]));
        }
    }
    put(r, t, j, r->wanted);
    for (int64_t v = 0; v < r->victim_count; v++)
        respond(r, t, r->victims[v], r->s.most[r->victims[v]]);
}

/* Back to where the job is now. */
static void reset(Run *r, State *t, int64_t j) {
    memcpy(r->wanted, current_of(r, j), (size_t)r->s.nodes);
    if (r->s.at_home[j] < INFINITY && is_changed(r, t, j)) seize(r, t, j);
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
    if (t->gpus[near] && draw(r, 4))
        while (row_of(r, t, near)[n] == 0) n = after(n, nodes);
    int64_t least = r->s.least[j] > 1 ? r->s.least[j] : 1, size = some_size(r, t, j, n);
    size = least_of(size < least ? least : size, r->s.most[j]);
    if (size < least) return;
    memset(r->wanted, 0, (size_t)nodes);
    int64_t left = size;
    for (int own = 1; own >= 0; own--)
        for (int64_t i = 0, m = n; i < nodes && left && nodes_left; i++, m = after(m, nodes)) {
            if (r->wanted[m] || r->s.capacity[m] == 0) continue;
            if (own && !(row[m] || m == n)) continue;
            r->wanted[m] = (uint8_t)least_of(left, r->s.capacity[m]);
            left -= r->wanted[m];
            nodes_left--;
        }
    if (size - left >= least) seize(r, t, j);
}

/* Two jobs change places. */
static void swap_jobs(Run *r, State *t, int64_t a, int64_t b) {
    int64_t gpus_a = t->gpus[a], gpus_b = t->gpus[b];
    if (a == b || gpus_a > r->s.most[b] || gpus_b > r->s.most[a]) return;
    if ((gpus_a && gpus_a < r->s.least[b]) || (gpus_b && gpus_b < r->s.least[a])) return;
    memcpy(r->old, row_of(r, t, a), (size_t)r->s.nodes);
    memcpy(r->wanted, row_of(r, t, b), (size_t)r->s.nodes);
    lift(r, t, a);
    lift(r, t, b);
    put(r, t, a, r->wanted);
    put(r, t, b, r->old);
}

static void swap_nodes(Run *r, State *t, int64_t a, int64_t b) {
    uint8_t open = t->open[a], shared = t->shared[a];
    t->open[a] = t->open[b], t->open[b] = open;
    t->shared[a] = t->shared[b], t->shared[b] = shared;
    for (int64_t j = 0; j < r->s.jobs; j++) {
        uint8_t *row = row_of(r, t, j), held = row[a];
        if (held == row[b]) continue;
        row[a] = row[b], row[b] = held;
        price(r, t, j);
    }
}

/* Rename nodes of equal capacity so that this job is where it is now. */
static void align(Run *r, State *t, int64_t j) {
    const uint8_t *row = row_of(r, t, j), *goal = current_of(r, j);
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
        if (!memcmp(row_of(r, child, j), row_of(r, father, j), (size_t)r->s.nodes)) continue;
        r->victims[r->victim_count++] = (int32_t)j;
        lift(r, child, j);
    }
    for (int64_t v = 0; v < r->victim_count; v++)
        admit(r, child, r->victims[v], row_of(r, father, r->victims[v]));
}

static void sum_up(Run *r, State *t) {
    t->total = 0.0;
    for (int64_t j = 0; j < r->s.jobs; j++) t->total += t->cost[j];
    t->born = r->births++;
}

static void load(Run *r, State *t, const uint8_t *cells) {
    memset(t->cost, 0, r->bytes);
    memcpy(t->open, r->s.capacity, (size_t)r->s.nodes);
    for (int64_t j = 0; j < r->s.jobs; j++) {
        price(r, t, j);
        admit(r, t, j, cells + j * r->s.nodes);
    }
}

/* By falling fitness; of equals the younger, so that the search drifts along plateaus. */
static int by_total(const void *a, const void *b) {
    const State *x = *(State *const *)a, *y = *(State *const *)b;
    if (x->total != y->total) return x->total < y->total ? -1 : 1;
    return x->born > y->born ? -1 : 1;
}

/* Sort states; the first of each total survives: equal totals are equal up to nodes' names. */
static int64_t survive(State **states, int64_t count, int64_t size) {
    int64_t kept = 0;
    State *swap;
    qsort(states, (size_t)count, sizeof *states, by_total);
    for (int64_t i = 0; i < count && kept < size; i++) {
        if (kept && states[i]->total == states[kept - 1]->total) continue;
        swap = states[kept], states[kept] = states[i], states[i] = swap;
        kept++;
    }
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
                      int64_t generations, int64_t patience) {
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
    alive = survive(states, alive, size);
    double record = states[0]->total;
    for (int64_t g = 0, waited = 0; g < generations && waited < patience; g++, waited++) {
        for (int64_t i = 0; i < size; i++) breed(r, states, alive, states[alive + i]);
        alive = survive(states, alive + size, size);
        if (states[0]->total < record * (1.0 - 1e-7)) waited = -1;
        record = states[0]->total < record ? states[0]->total : record;
    }
    return alive;
}

static void lay_out(const Run *r, State *t, uint8_t *block) {
    t->cost = (double *)block;
    t->gpus = (int32_t *)(t->cost + r->s.jobs);
    t->spread = t->gpus + r->s.jobs;
    t->open = (uint8_t *)(t->spread + r->s.jobs);
    t->shared = t->open + r->s.nodes;
    t->cells = t->shared + r->s.nodes;
}

/* Writes the last population to `found` (room for `size` states), best first; how many, or -1. */
int64_t boa_evolve(const Search *s, const uint8_t *warm, int64_t count, int64_t size,
                   int64_t generations, int64_t patience, uint64_t seed, uint8_t *found) {
    Run run = {.s = *s, .random = seed};
    size_t jobs = (size_t)s->jobs, nodes = (size_t)s->nodes;
    size_t both = (size_t)(size + (count < size ? size : count + 1)); /* parents and children */
    run.bytes = (jobs * 16 + nodes * 2 + jobs * nodes + 63) / 64 * 64;
    uint8_t *blocks = malloc(run.bytes * both), *rows = malloc(nodes * 3);
    State *states = malloc(sizeof *states * both), **order = malloc(sizeof *order * both);
    run.victims = malloc(sizeof *run.victims * jobs);
    int64_t alive = -1;
    if (blocks && rows && states && order && run.victims) {
        run.old = rows, run.wanted = rows + nodes, run.cut = rows + 2 * nodes;
        for (size_t i = 0; i < both; i++) {
            lay_out(&run, &states[i], blocks + i * run.bytes);
            order[i] = &states[i];
        }
        alive = search(&run, order, warm, count, size, generations, patience);
        for (int64_t i = 0; i < alive; i++)
            memcpy(found + (size_t)i * jobs * nodes, order[i]->cells, jobs * nodes);
    }
    free(blocks), free(rows), free(states), free(order), free(run.victims);
    return alive;
}
