/* The market of clearing.py, to the same prices and choices, for machines that have a C compiler.
 *
 * Plain C without Python: clearing.py loads it through ctypes and falls back to NumPy without it.
 *
 * At any price a job takes a corner of the concave hull of its (GPUs, gain) on a type, fewer GPUs
 * the higher the price. So hulls are made once for all rooms; and while a price is halved in, only
 * those jobs are looked at whose corners at the lower and at the higher end are still different.
 */
#include <math.h>
#include <stdint.h>

typedef struct {
    int64_t jobs, states, kinds;
    const double *gains, *gpus; /* jobs × states */
    const int64_t *kind;        /* jobs × states */
    double nothing, least, light;
    int64_t halvings, rounds;
    int64_t *corners; /* jobs × states: columns of hulls, by rising GPUs */
    int64_t *first;   /* jobs × kinds + 1: where each hull begins */
    int64_t *work;    /* 4 × jobs */
    double *amounts;  /* 2 × jobs + 3 × kinds */
    double highest;   /* a price that nobody pays; 0 as long as hulls are not made */
} Market;

static double gpus(const Market *m, int64_t j, int64_t column) {
    return m->gpus[j * m->states + column];
}

static double gain(const Market *m, int64_t j, int64_t column) {
    return m->gains[j * m->states + column];
}

/* Whether the way from a to c passes above b, or through it. */
static int below(const Market *m, int64_t j, int64_t a, int64_t b, int64_t c) {
    const double rise = gain(m, j, b) - gain(m, j, a), run = gpus(m, j, b) - gpus(m, j, a);
    const double whole = gain(m, j, c) - gain(m, j, a), width = gpus(m, j, c) - gpus(m, j, a);
    return rise * width <= whole * run;
}

/* Upper hulls over what gains anything, up to the most that can be gained. */
static double hulls(const Market *m) {
    double highest = m->nothing;
    int64_t count = 0;
    for (int64_t j = 0; j < m->jobs; j++) {
        for (int64_t h = 0; h < m->kinds; h++) {
            const int64_t begin = m->first[j * m->kinds + h] = count;
            int64_t *hull = m->corners;
            for (int64_t s = 0; s < m->states; s++) {
                if (m->kind[j * m->states + s] != h || !(gain(m, j, s) > m->nothing)) continue;
                if (gain(m, j, s) > highest * gpus(m, j, s) * (1.0 - 1e-12)) { /* or not worth it */
                    const double each = gain(m, j, s) / gpus(m, j, s);
                    if (each > highest) highest = each;
                }
                int64_t at = count++; /* columns come by rising GPUs: this moves nothing */
                for (; at > begin && gpus(m, j, hull[at - 1]) > gpus(m, j, s); at--)
                    hull[at] = hull[at - 1];
                hull[at] = s;
            }
            int64_t end = begin;
            for (int64_t n = begin; n < count; n++) {
                const int64_t s = hull[n];
                if (end > begin && gain(m, j, s) <= gain(m, j, hull[end - 1])) continue;
                if (end > begin && gpus(m, j, s) == gpus(m, j, hull[end - 1])) end--;
                while (end > begin + 1 && below(m, j, hull[end - 2], hull[end - 1], s)) end--;
                hull[end++] = s;
            }
            count = end;
        }
    }
    m->first[m->jobs * m->kinds] = count;
    return highest * 1.01;
}

/* The corner that is best at a price, from `low` up; its score comes back. `high` > `low`. */
static int64_t best_corner(const Market *m, int64_t j, int64_t low, int64_t high, double price,
                           double *score) {
    int64_t at = low;
    double most = gain(m, j, m->corners[at]) - price * gpus(m, j, m->corners[at]);
    while (at + 1 < high) {
        const int64_t next = m->corners[at + 1];
        const double more = gain(m, j, next) - price * gpus(m, j, next);
        if (!(more > most)) break;
        most = more, at++;
    }
    *score = most;
    return at;
}

static void choose(const Market *m, const double *prices, int64_t *chosen, double *taken) {
    for (int64_t h = 0; h < m->kinds; h++) taken[h] = 0.0;
    for (int64_t j = 0; j < m->jobs; j++) {
        const int64_t *first = m->first + j * m->kinds;
        double most = m->nothing, score;
        int64_t best = -1;
        for (int64_t h = 0; h < m->kinds; h++) {
            if (first[h] == first[h + 1]) continue;
            const int64_t at = best_corner(m, j, first[h], first[h + 1], prices[h], &score);
            if (score > most) most = score, best = m->corners[at];
        }
        chosen[j] = best;
        if (best >= 0) taken[m->kind[j * m->states + best]] += gpus(m, j, best);
    }
}

/* The corner of type h that a job takes at a price, -1 for none: `other` is what it has from the
 * types before, `after` from those behind. `low` and `high`: corners between which it must be. */
static int64_t takes(const Market *m, int64_t j, int64_t low, int64_t high, double price,
                     double other, double after) {
    double score;
    const int64_t at = best_corner(m, j, low, high, price, &score);
    return score > other && score >= after ? at : -1;
}

/* The lowest price, to within the halvings, at which what is taken of type h fits. */
static double price_of(const Market *m, int64_t h, const double *prices, double highest,
                       double room) {
    int64_t *open = m->work, *at_low = m->work + m->jobs, *at_high = m->work + 2 * m->jobs;
    int64_t *found = m->work + 3 * m->jobs;
    double *other = m->amounts, *after = m->amounts + m->jobs;
    double low = prices[h], high = highest, settled = 0.0, score;
    int64_t count = 0;
    for (int64_t j = 0; j < m->jobs; j++) {
        const int64_t *first = m->first + j * m->kinds;
        if (first[h] == first[h + 1]) continue;
        other[j] = after[j] = m->nothing;
        for (int64_t k = 0; k < m->kinds; k++) {
            if (k == h || first[k] == first[k + 1]) continue;
            best_corner(m, j, first[k], first[k + 1], prices[k], &score);
            if (k < h && score > other[j]) other[j] = score;
            if (k > h && score > after[j]) after[j] = score;
        }
        at_low[j] = takes(m, j, first[h], first[h + 1], low, other[j], after[j]);
        at_high[j] = takes(m, j, first[h], first[h + 1], high, other[j], after[j]);
        if (at_low[j] == at_high[j])
            settled += at_low[j] < 0 ? 0.0 : gpus(m, j, m->corners[at_low[j]]);
        else open[count++] = j;
    }
    for (int64_t n = 0; n < m->halvings; n++) {
        const double middle = (low + high) / 2;
        double taken = settled;
        for (int64_t i = 0; i < count; i++) {
            const int64_t j = open[i], *first = m->first + j * m->kinds;
            const int64_t from = at_high[j] < 0 ? first[h] : at_high[j];
            const int64_t at = takes(m, j, from, at_low[j] + 1, middle, other[j], after[j]);
            found[i] = at;
            if (at >= 0) taken += gpus(m, j, m->corners[at]);
        }
        const int over = taken > room;
        if (over) low = middle;
        else high = middle;
        int64_t kept = 0;
        for (int64_t i = 0; i < count; i++) {
            const int64_t j = open[i], at = found[i];
            if (over) at_low[j] = at;
            else at_high[j] = at;
            if (at_low[j] == at_high[j])
                settled += at < 0 ? 0.0 : gpus(m, j, m->corners[at]);
            else open[kept++] = j;
        }
        count = kept;
    }
    return high;
}

static int over(const Market *m, const double *taken, const double *room) {
    for (int64_t h = 0; h < m->kinds; h++)
        if (taken[h] > room[h]) return 1;
    return 0;
}

static void settle(const Market *m, double highest, const double *room, double *prices,
                   int64_t *chosen, double *taken, double *before) {
    for (int64_t h = 0; h < m->kinds; h++) /* of what is not there nobody is to dream */
        prices[h] = room[h] > 0 ? 0.0 : highest;
    for (int64_t round = 0; round < m->rounds; round++) {
        choose(m, prices, chosen, taken);
        if (!over(m, taken, room)) return;
        for (int64_t h = 0; h < m->kinds; h++) before[h] = taken[h];
        for (int64_t h = 0; h < m->kinds; h++)
            if (before[h] > room[h]) prices[h] = price_of(m, h, prices, highest, room[h]);
    }
    choose(m, prices, chosen, taken);
}

/* Whether a comes before b: it gains more by a GPU, or as much and is the first of them. */
static int before_in(const double *ratio, int64_t a, int64_t b) {
    return ratio[a] > ratio[b] || (ratio[a] == ratio[b] && a < b);
}

/* Let the first of a heap of jobs sink to its place. */
static void sink(int64_t *heap, int64_t count, int64_t at, const double *ratio) {
    const int64_t job = heap[at];
    for (int64_t below; (below = 2 * at + 1) < count; at = below) {
        if (below + 1 < count && before_in(ratio, heap[below + 1], heap[below])) below++;
        if (!before_in(ratio, heap[below], job)) break;
        heap[at] = heap[below];
    }
    heap[at] = job;
}

/* Prices may chase each other over jobs that would as soon have one type as another. Whoever gains
 * least by a GPU of a type that is then still too much asked for leaves it. */
static void evict(const Market *m, const double *room, int64_t *chosen, double *taken) {
    int64_t *heap = m->work;
    double *ratio = m->amounts; /* what is gained by a GPU, negative: the least comes first */
    for (int64_t h = 0; h < m->kinds; h++) {
        if (!(taken[h] > room[h])) continue;
        int64_t count = 0;
        for (int64_t j = 0; j < m->jobs; j++) {
            if (chosen[j] < 0 || m->kind[j * m->states + chosen[j]] != h) continue;
            const double each = gain(m, j, chosen[j]) / gpus(m, j, chosen[j]);
            if (!(each < INFINITY)) continue;
            ratio[j] = -each;
            heap[count++] = j;
        }
        for (int64_t n = count / 2 - 1; n >= 0; n--) sink(heap, count, n, ratio);
        while (taken[h] > room[h] && count > 0) { /* or nobody is there to leave */
            const int64_t job = heap[0];
            taken[h] -= gpus(m, job, chosen[job]);
            chosen[job] = -1;
            heap[0] = heap[--count];
            sink(heap, count, 0, ratio);
        }
    }
}

/* The best of what a job could still have, its column; -1 for nothing. */
static int64_t best_left(const Market *m, int64_t j, int64_t has, const double *free,
                         double *ratio) {
    const double have = has >= 0 ? gain(m, j, has) : 0.0, own = has >= 0 ? gpus(m, j, has) : 0.0;
    const int64_t on = has >= 0 ? m->kind[j * m->states + has] : -1;
    int64_t best = -1;
    *ratio = -1.0;
    for (int64_t s = 0; s < m->states; s++) {
        const int64_t h = m->kind[j * m->states + s];
        const double extra = gpus(m, j, s) - (h == on ? own : 0.0);
        if (extra > free[h]) continue;
        const double more = gain(m, j, s) - have;
        if (more <= m->least) continue;
        const double each = more / (extra > m->light ? extra : m->light);
        if (each > *ratio) *ratio = each, best = s;
    }
    return best;
}

/* Jobs that could still have something better, as a heap; how many. */
static int64_t wishes(const Market *m, const int64_t *chosen, const double *free, int64_t *wish,
                      double *ratio, int64_t *heap) {
    int64_t count = 0;
    for (int64_t j = 0; j < m->jobs; j++) {
        wish[j] = best_left(m, j, chosen[j], free, &ratio[j]);
        if (wish[j] >= 0) heap[count++] = j;
    }
    for (int64_t n = count / 2 - 1; n >= 0; n--) sink(heap, count, n, ratio);
    return count;
}

/* What is left over, each time to whoever gains most by the GPU. While what is free only gets
 * less, whoever could have nothing better stays so, and what others wish for only gets worse: it
 * is looked at again when they come first. */
static void fill(const Market *m, const double *room, int64_t *chosen, const double *taken,
                 double *free) {
    int64_t *heap = m->work, *wish = m->work + m->jobs;
    double *ratio = m->amounts;
    int any = 0;
    for (int64_t h = 0; h < m->kinds; h++) {
        free[h] = room[h] - taken[h];
        any |= free[h] > 0;
    }
    if (!any) return; /* at its price nobody would rather have as much, or less */
    int64_t count = wishes(m, chosen, free, wish, ratio, heap);
    while (count > 0) {
        const int64_t job = heap[0], has = chosen[job];
        const int64_t on = has >= 0 ? m->kind[job * m->states + has] : -1;
        const int64_t kind = m->kind[job * m->states + wish[job]];
        const double own = has >= 0 ? gpus(m, job, has) : 0.0;
        const int fits = gpus(m, job, wish[job]) - (on == kind ? own : 0.0) <= free[kind];
        if (fits) {
            const double before = on >= 0 ? free[on] : 0.0;
            if (on >= 0) free[on] += own;
            chosen[job] = wish[job];
            free[kind] -= gpus(m, job, chosen[job]);
            if (on >= 0 && free[on] > before) {
                count = wishes(m, chosen, free, wish, ratio, heap);
                continue;
            }
        }
        wish[job] = best_left(m, job, chosen[job], free, &ratio[job]);
        if (wish[job] < 0) heap[0] = heap[--count];
        sink(heap, count, 0, ratio);
    }
}

/* For each of `count` rooms: the prices, and what all gain together; for the last of them, what
 * every job is given. */
void boa_clear(Market *m, int64_t count, const double *rooms, int64_t *chosen,
               double *prices, double *totals) {
    double *taken = m->amounts + 2 * m->jobs, *before = taken + m->kinds;
    double *free = before + m->kinds;
    if (m->highest == 0.0) m->highest = hulls(m);
    for (int64_t n = 0; n < count; n++) {
        const double *room = rooms + n * m->kinds;
        settle(m, m->highest, room, prices + n * m->kinds, chosen, taken, before);
        evict(m, room, chosen, taken);
        fill(m, room, chosen, taken, free);
        totals[n] = 0.0;
        for (int64_t j = 0; j < m->jobs; j++)
            if (chosen[j] >= 0) totals[n] += gain(m, j, chosen[j]);
    }
}
