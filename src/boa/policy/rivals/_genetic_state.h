/* States of the genetic search in _genetic.c: rows of GPUs, and what is kept in step with them.
 *
 * Most jobs are on one node, so a state also carries every job's shape: GPUs, nodes, and which node
 * if it is one. A job on one node is then moved, compared and priced without a look at its row.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NOBODY (-1)
#define LANES 16 /* nodes come in multiples of this, some of them without GPUs */

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

/* A row in short. */
typedef struct {
    int32_t gpus, spread; /* spread: on how many nodes */
    int32_t node;         /* where it is, if on one */
} Shape;

typedef struct {
    double total;
    int64_t born;
    double *cost; /* the beginning of the one block that holds all arrays */
    int32_t *gpus, *spread, *node; /* jobs: their rows' shapes */
    uint8_t *open;   /* free GPUs of each node */
    uint8_t *shared; /* has the node a distributed job? */
    uint8_t *cells;
} State;

typedef struct {
    Search s;
    uint64_t random;
    size_t bytes;
    Shape *home;                 /* jobs: shapes of the current rows */
    double *floor;               /* jobs: no row costs less */
    double *lowest;              /* jobs × across × width: cost of the best count, if changed */
    uint8_t *old, *wanted, *cut; /* rows */
    int32_t *free_nodes;         /* nodes with GPUs for a distributed job */
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

static double lowest_cost(const Run *r, int64_t j, int across, int64_t gpus) {
    return r->lowest[(j * 2 + across) * r->s.width + least_of(gpus, r->s.most[j])];
}

static uint8_t *row_of(const Run *r, const State *t, int64_t j) {
    return t->cells + j * r->s.nodes;
}

static const uint8_t *current_of(const Run *r, int64_t j) {
    return r->s.current + j * r->s.nodes;
}

static Shape shape_of(const State *t, int64_t j) {
    return (Shape){t->gpus[j], t->spread[j], t->node[j]};
}

static int same_row(const Run *r, Shape a, const uint8_t *row_a, Shape b, const uint8_t *row_b) {
    if (a.gpus != b.gpus || a.spread != b.spread) return 0;
    if (a.spread <= 1) return a.spread == 0 || a.node == b.node;
    return !memcmp(row_a, row_b, (size_t)r->s.nodes);
}

static int is_changed(const Run *r, const State *t, int64_t j) {
    return !same_row(r, shape_of(t, j), row_of(r, t, j), r->home[j], current_of(r, j));
}

static void price(const Run *r, State *t, int64_t j) {
    t->cost[j] = cost_with(r, j, t->spread[j] > 1, is_changed(r, t, j), t->gpus[j]);
}

/* Loops over all nodes, with nothing in them that keeps a compiler from taking LANES at once. */
static int64_t whole_lanes(const Run *r) { return r->s.nodes / LANES * LANES; }

static Shape measured(const uint8_t *restrict row, int64_t nodes) {
    uint16_t gpus = 0, spread = 0;
    for (int64_t n = 0; n < nodes; n++) {
        gpus = (uint16_t)(gpus + row[n]);
        spread = (uint16_t)(spread + (row[n] != 0));
    }
    int32_t node = 0;
    while (spread == 1 && row[node] == 0) node++;
    return (Shape){gpus, spread, node};
}

static void give_back(uint8_t *restrict open, uint8_t *restrict shared, uint8_t *restrict row,
                      int64_t nodes) {
    for (int64_t n = 0; n < nodes; n++) {
        open[n] = (uint8_t)(open[n] + row[n]);
        shared[n] = (uint8_t)(row[n] ? 0 : shared[n]);
        row[n] = 0;
    }
}

static void take(uint8_t *restrict open, uint8_t *restrict shared, uint8_t *restrict row,
                 const uint8_t *restrict wanted, int64_t nodes) {
    for (int64_t n = 0; n < nodes; n++) {
        row[n] = wanted[n];
        open[n] = (uint8_t)(open[n] - wanted[n]);
        shared[n] = (uint8_t)(wanted[n] ? 1 : shared[n]);
    }
}

/* Free GPUs that a distributed job may have: none where there is one. Without a branch. */
static uint8_t beside(uint8_t open, uint8_t shared) { return (uint8_t)(open & (shared - 1)); }

static int would_clash(const uint8_t *restrict open, const uint8_t *restrict shared,
                       const uint8_t *restrict row, int64_t nodes) {
    uint8_t wrong = 0;
    for (int64_t n = 0; n < nodes; n++) {
        uint8_t free = beside(open[n], shared[n]);
        wrong = (uint8_t)(wrong | (row[n] > free));
    }
    return wrong;
}

static void free_beside(uint8_t *restrict free, const uint8_t *restrict open,
                        const uint8_t *restrict shared, int64_t nodes) {
    for (int64_t n = 0; n < nodes; n++) free[n] = beside(open[n], shared[n]);
}

/* List nodes with GPUs for a distributed job, in their order; `free` is overwritten. How many. */
static int64_t list_free(const State *t, int64_t nodes, uint8_t *free, int32_t *listed) {
    int64_t count = 0;
    free_beside(free, t->open, t->shared, nodes);
    for (int64_t n = 0; n < nodes; n += 8) { /* mostly there are few */
        uint64_t eight;
        memcpy(&eight, free + n, sizeof eight);
        for (int64_t i = n; eight && i < n + 8; i++) {
            listed[count] = (int32_t)i;
            count += free[i] != 0;
        }
    }
    return count;
}

/* Would it clash if the holder of `own`, a distributed job, were gone? */
static int would_clash_without(const uint8_t *restrict open, const uint8_t *restrict shared,
                               const uint8_t *restrict own, const uint8_t *restrict row,
                               int64_t nodes) {
    uint8_t wrong = 0;
    for (int64_t n = 0; n < nodes; n++) {
        uint8_t others = (uint8_t)(shared[n] & (own[n] == 0));
        uint8_t free = beside((uint8_t)(open[n] + own[n]), others);
        wrong = (uint8_t)(wrong | (row[n] > free));
    }
    return wrong;
}

/* What a job could have: on one node, and across nodes that have no distributed job. */
typedef struct {
    int64_t most, reach;
} Room;

static Room room_of(const uint8_t *restrict open, const uint8_t *restrict shared, int64_t nodes) {
    uint8_t most = 0;
    uint16_t reach = 0;
    for (int64_t n = 0; n < nodes; n++) {
        most = open[n] > most ? open[n] : most;
        reach = (uint16_t)(reach + beside(open[n], shared[n]));
    }
    return (Room){most, reach};
}

static Room room_with(const uint8_t *restrict open, const uint8_t *restrict shared,
                      const uint8_t *restrict own, int64_t nodes) {
    uint8_t most = 0;
    uint16_t reach = 0;
    for (int64_t n = 0; n < nodes; n++) {
        uint8_t free = (uint8_t)(open[n] + own[n]), others = (uint8_t)(shared[n] & (own[n] == 0));
        most = free > most ? free : most;
        reach = (uint16_t)(reach + beside(free, others));
    }
    return (Room){most, reach};
}

/* The room there is, and what a job has besides: as if it had nothing. */
static Room room_without(const Run *r, const State *t, int64_t j, Room room) {
    int64_t node = t->node[j], gpus = t->gpus[j];
    if (t->spread[j] > 1) return room_with(t->open, t->shared, row_of(r, t, j), whole_lanes(r));
    if (gpus == 0) return room;
    int64_t open = t->open[node] + gpus;
    return (Room){open > room.most ? open : room.most, room.reach + (t->shared[node] ? 0 : gpus)};
}

/* Take all of a job's GPUs away; its price is left to the caller. */
static void vacate(const Run *r, State *t, int64_t j) {
    int32_t node = t->node[j];
    if (t->spread[j] > 1) {
        give_back(t->open, t->shared, row_of(r, t, j), whole_lanes(r));
    } else if (t->spread[j] == 1) {
        t->open[node] = (uint8_t)(t->open[node] + t->gpus[j]);
        row_of(r, t, j)[node] = 0;
    }
    t->gpus[j] = t->spread[j] = 0;
}

static void lift(const Run *r, State *t, int64_t j) {
    if (t->gpus[j] == 0) return;
    vacate(r, t, j);
    price(r, t, j);
}

/* Seat a job that has nothing on a row that fits; its price is left to the caller. */
static void seat(const Run *r, State *t, int64_t j, Shape shape, const uint8_t *row) {
    if (shape.spread > 1) {
        take(t->open, t->shared, row_of(r, t, j), row, whole_lanes(r));
    } else if (shape.spread == 1) {
        row_of(r, t, j)[shape.node] = (uint8_t)shape.gpus;
        t->open[shape.node] = (uint8_t)(t->open[shape.node] - shape.gpus);
    }
    t->gpus[j] = shape.gpus;
    t->spread[j] = shape.spread;
    t->node[j] = shape.node;
}

static void put(const Run *r, State *t, int64_t j, Shape shape, const uint8_t *row) {
    seat(r, t, j, shape, row);
    price(r, t, j);
}

/* Are a row's GPUs free, and its nodes without distributed jobs if it would be one? */
static int is_free(const Run *r, const State *t, Shape shape, const uint8_t *row) {
    if (shape.spread == 1) return t->open[shape.node] >= shape.gpus;
    return !would_clash(t->open, t->shared, row, whole_lanes(r));
}

/* Would the GPUs of its current row be free if a job had nothing? */
static int is_home_free(const Run *r, const State *t, int64_t j, Room room) {
    const uint8_t *own = row_of(r, t, j), *row = current_of(r, j);
    Shape home = r->home[j];
    if (home.spread == 1) return t->open[home.node] + own[home.node] >= home.gpus;
    if (home.gpus > room.reach) return 0; /* which is most often the reason, and quickly seen */
    if (t->spread[j] > 1)
        return !would_clash_without(t->open, t->shared, own, row, whole_lanes(r));
    if (t->gpus[j] == 0) return is_free(r, t, home, row);
    int64_t node = t->node[j], open = t->open[node];
    t->open[node] = (uint8_t)(open + t->gpus[j]);
    int free = is_free(r, t, home, row);
    t->open[node] = (uint8_t)open;
    return free;
}

/* What is free of a row for a distributed job. */
static void cut_to_free(uint8_t *restrict cut, const uint8_t *restrict open,
                        const uint8_t *restrict shared, const uint8_t *restrict row,
                        int64_t nodes) {
    for (int64_t n = 0; n < nodes; n++) {
        uint8_t free = beside(open[n], shared[n]);
        cut[n] = row[n] < free ? row[n] : free;
    }
}

/* Repair: give a job that has nothing as much of a row as every limit allows. */
static void admit(Run *r, State *t, int64_t j, Shape shape, const uint8_t *row) {
    int64_t left = r->s.most[j], nodes_left = r->s.max_nodes, nodes = r->s.nodes;
    if (shape.spread == 0) return;
    if (shape.gpus >= r->s.least[j] && shape.gpus <= left && shape.spread <= nodes_left &&
        is_free(r, t, shape, row)) {
        put(r, t, j, shape, row);
        return;
    }
    int64_t n = draw(r, nodes);
    if (shape.spread == 1) {
        int64_t some = least_of(least_of(shape.gpus, t->open[shape.node]), left);
        if (some && some >= r->s.least[j]) put(r, t, j, (Shape){(int32_t)some, 1, shape.node}, row);
        return;
    }
    uint8_t *cut = r->cut;
    cut_to_free(cut, t->open, t->shared, row, whole_lanes(r));
    Shape kept = measured(cut, whole_lanes(r));
    if (kept.gpus > left || kept.spread > nodes_left) { /* too much: first come, first served */
        for (int64_t i = 0; i < nodes; i++, n = after(n, nodes)) {
            cut[n] = (uint8_t)(nodes_left ? least_of(cut[n], left) : 0);
            left -= cut[n];
            nodes_left -= cut[n] > 0;
        }
        kept = measured(cut, whole_lanes(r));
    }
    if (kept.gpus >= r->s.least[j]) put(r, t, j, kept, cut);
}

/* A state of these rows, repaired. */
static void load(Run *r, State *t, const uint8_t *cells) {
    memset(t->cost, 0, r->bytes);
    memcpy(t->open, r->s.capacity, (size_t)r->s.nodes);
    for (int64_t j = 0; j < r->s.jobs; j++) {
        const uint8_t *row = cells + j * r->s.nodes;
        price(r, t, j);
        admit(r, t, j, measured(row, whole_lanes(r)), row);
    }
}

static void sum_up(Run *r, State *t) {
    t->total = 0.0;
    for (int64_t j = 0; j < r->s.jobs; j++) t->total += t->cost[j];
    t->born = r->births++;
}

static void lay_out(const Run *r, State *t, uint8_t *block) {
    t->cost = (double *)block;
    t->gpus = (int32_t *)(t->cost + r->s.jobs);
    t->spread = t->gpus + r->s.jobs;
    t->node = t->spread + r->s.jobs;
    t->open = (uint8_t *)(t->node + r->s.jobs);
    t->shared = t->open + r->s.nodes;
    t->cells = t->shared + r->s.nodes;
}
