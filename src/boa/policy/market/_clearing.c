/* The market of clearing.py, operation by operation, for machines that have a C compiler.
 *
 * Plain C without Python: clearing.py loads it through ctypes and falls back to NumPy without it.
 */
#include <math.h>
#include <stdint.h>

typedef struct {
    int64_t jobs, states, kinds;
    const double *gains, *gpus; /* jobs × states */
    const int64_t *kind;        /* jobs × states */
    const double *room;         /* kinds */
} Market;

static void choose(const Market *m, const double *prices, double nothing, int64_t *chosen,
                   double *taken) {
    for (int64_t h = 0; h < m->kinds; h++) taken[h] = 0.0;
    for (int64_t j = 0; j < m->jobs; j++) {
        const int64_t at = j * m->states;
        int64_t best = 0;
        double most = -INFINITY;
        for (int64_t s = 0; s < m->states; s++) {
            const double score = m->gains[at + s] - prices[m->kind[at + s]] * m->gpus[at + s];
            if (score > most) most = score, best = s;
        }
        chosen[j] = most > nothing ? best : -1;
        if (chosen[j] >= 0) taken[m->kind[at + best]] += m->gpus[at + best];
    }
}

static int over(const Market *m, const double *taken) {
    for (int64_t h = 0; h < m->kinds; h++)
        if (taken[h] > m->room[h]) return 1;
    return 0;
}

static void settle(const Market *m, double nothing, int64_t halvings, int64_t rounds,
                   double *prices, int64_t *chosen, double *taken, double *before) {
    double highest = nothing;
    for (int64_t n = 0; n < m->jobs * m->states; n++) {
        const double each = m->gains[n] / m->gpus[n];
        if (each > highest) highest = each;
    }
    highest *= 1.01;
    for (int64_t h = 0; h < m->kinds; h++) prices[h] = 0.0;
    for (int64_t round = 0; round < rounds; round++) {
        choose(m, prices, nothing, chosen, taken);
        if (!over(m, taken)) return;
        for (int64_t h = 0; h < m->kinds; h++) before[h] = taken[h];
        for (int64_t h = 0; h < m->kinds; h++) {
            if (before[h] <= m->room[h]) continue;
            double low = prices[h], high = highest;
            for (int64_t n = 0; n < halvings; n++) {
                prices[h] = (low + high) / 2;
                choose(m, prices, nothing, chosen, taken);
                if (taken[h] > m->room[h]) low = prices[h];
                else high = prices[h];
            }
            prices[h] = high;
        }
    }
    choose(m, prices, nothing, chosen, taken);
    for (int64_t h = 0; h < m->kinds; h++)
        if (taken[h] > m->room[h]) prices[h] = highest;
    choose(m, prices, nothing, chosen, taken);
}

static void fill(const Market *m, double least, double light, int64_t *chosen, double *taken) {
    for (;;) {
        int64_t job = -1, column = 0;
        double best = -1.0;
        for (int64_t j = 0; j < m->jobs; j++) {
            const int64_t at = j * m->states, has = chosen[j];
            const double gain = has >= 0 ? m->gains[at + has] : 0.0;
            const double own = has >= 0 ? m->gpus[at + has] : 0.0;
            const int64_t on = has >= 0 ? m->kind[at + has] : -1;
            for (int64_t s = 0; s < m->states; s++) {
                const int64_t h = m->kind[at + s];
                const double more = m->gains[at + s] - gain;
                const double extra = m->gpus[at + s] - (h == on ? own : 0.0);
                if (more <= least || extra > m->room[h] - taken[h]) continue;
                const double ratio = more / (extra > light ? extra : light);
                if (ratio > best) best = ratio, job = j, column = s;
            }
        }
        if (job < 0) return;
        const int64_t at = job * m->states;
        if (chosen[job] >= 0) taken[m->kind[at + chosen[job]]] -= m->gpus[at + chosen[job]];
        chosen[job] = column;
        taken[m->kind[at + column]] += m->gpus[at + column];
    }
}

/* What every job is given; returns what all gain together. `work`: 2 × kinds. */
double boa_clear(const Market *m, double nothing, double least, double light, int64_t halvings,
                 int64_t rounds, int64_t *chosen, double *prices, double *work) {
    double *taken = work, *before = work + m->kinds, total = 0.0;
    settle(m, nothing, halvings, rounds, prices, chosen, taken, before);
    choose(m, prices, nothing, chosen, taken);
    fill(m, least, light, chosen, taken);
    for (int64_t j = 0; j < m->jobs; j++)
        if (chosen[j] >= 0) total += m->gains[j * m->states + chosen[j]];
    return total;
}
