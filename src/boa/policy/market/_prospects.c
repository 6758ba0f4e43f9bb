/* The gains of prospects.py, operation by operation, for machines that have a C compiler.
 *
 * Plain C without Python: prospects.py loads it through ctypes and falls back to NumPy without it.
 */
#include <math.h>
#include <stdint.h>

/* A class at a price; arrays by epoch and state. `reached` has one row more: the end. */
typedef struct {
    int64_t epochs, states;
    double rescale_s, weight;
    const double *times, *reached, *values, *afters;
    const int64_t *front, *fronts; /* states that `starts` has to look at, and how many */
    const int64_t *narrower;       /* of states that bring nothing, one that is as fast; or null */
    const double *rates, *dollars;
} Class;

/* Jobs, class by class: those of class c are rows[c] … rows[c + 1] - 1. */
typedef struct {
    int64_t classes;
    const Class *const *of;
    const int64_t *rows, *epoch, *held;
    const double *left, *pause, *lost; /* `lost`: null where no stop loses any work */
} Jobs;

/* What prospects.py says of these: its constants. */
typedef struct {
    double no_use, never, calm, nothing;
} Rules;

static double larger(double a, double b) { return a > b ? a : b; }

static double starts(const Class *c, int64_t epoch, double left) {
    const double *times = c->times + epoch * c->states, *afters = c->afters + epoch * c->states;
    const int64_t *front = c->front + epoch * c->states;
    double least = INFINITY;
    for (int64_t n = 0; n < c->fronts[epoch]; n++) {
        const int64_t s = front[n];
        const double one = (left * times[s] + c->rescale_s) * c->values[s] + afters[s];
        least = one < least ? one : least;
    }
    return least;
}

/* The epoch that a state is in then, from one that it has reached; `epochs` at the end. */
static int64_t epoch_at(const Class *c, int64_t state, int64_t from, double at) {
    int64_t low = from, high = from; /* the first in [low, high] whose end is after `at` */
    for (int64_t step = 1; high < c->epochs; step *= 2) { /* not far, most often */
        if (c->reached[(high + 1) * c->states + state] > at) break;
        low = high + 1, high += step;
    }
    if (high > c->epochs) high = c->epochs;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (c->reached[(middle + 1) * c->states + state] <= at) low = middle + 1;
        else high = middle;
    }
    return low;
}

static double began(const Class *c, int64_t state, int64_t epoch, double left) {
    const int64_t at = epoch * c->states + state;
    return c->reached[at] + (1.0 - left) * c->times[at];
}

static double spent(const Class *c, int64_t state, int64_t epoch, double left, double pause,
                    double horizon) {
    const double since = began(c, state, epoch, left);
    const double at = since + larger(horizon - pause, 0.0);
    const int64_t then = epoch_at(c, state, epoch, at);
    if (then == c->epochs)
        return c->weight * (pause + c->reached[c->epochs * c->states + state] - since);
    const double to_come = c->reached[(then + 1) * c->states + state] - at;
    const double stays = c->values[state] * (to_come + larger(pause - horizon, 0.0)) +
                         c->afters[then * c->states + state];
    const double leaves = starts(c, then, to_come / c->times[then * c->states + state]);
    return c->weight * horizon + (leaves < stays ? leaves : stays);
}

static double ends_in(const Jobs *jobs, const Class *c, int64_t j) {
    const int64_t held = jobs->held[j], at = jobs->epoch[j] * c->states + held;
    if (held < 0) return INFINITY;
    const double done = (1.0 - jobs->left[j]) * c->times[at];
    return jobs->pause[j] + (c->reached[c->epochs * c->states + held] - c->reached[at] - done);
}

/* Seconds until jobs would end where they are; never, without GPUs. */
void boa_ends_in(const Jobs *jobs, double *ends) {
    for (int64_t n = 0; n < jobs->classes; n++)
        for (int64_t j = jobs->rows[n]; j < jobs->rows[n + 1]; j++)
            ends[j] = ends_in(jobs, jobs->of[n], j);
}

/* Dollars of the rest of jobs, each on what it is worth, where it is or elsewhere; `resumes`:
 * seconds until it makes progress where it is. */
void boa_to_go(const Jobs *jobs, const double *resumes, double *paid) {
    for (int64_t n = 0; n < jobs->classes; n++) {
        const Class *c = jobs->of[n];
        for (int64_t j = jobs->rows[n]; j < jobs->rows[n + 1]; j++) {
            const int64_t row = jobs->epoch[j] * c->states, held = jobs->held[j];
            const double left = jobs->left[j], *times = c->times + row, *afters = c->afters + row;
            double least = INFINITY, pause = c->rescale_s;
            int64_t best = 0;
            for (int64_t s = 0; s < c->states; s++) {
                const double one = c->values[s] * (left * times[s] + c->rescale_s) + afters[s];
                if (one < least) least = one, best = s;
            }
            if (held >= 0 &&
                c->values[held] * (left * times[held] + resumes[j]) + afters[held] <= least)
                best = held, pause = resumes[j];
            paid[j] = (left * times[best] + pause) * c->rates[best] + c->dollars[row + best];
        }
    }
}

/* GPUs that bring nothing are worth less than fewer; a job that is about to end keeps its own. */
static void leave_useless(const Rules *rules, const Class *c, int64_t held, double ends,
                          double *here, double *there) {
    const int keeps = !(ends > rules->calm * c->rescale_s);
    for (int64_t s = 0; s < c->states; s++) {
        const int64_t narrower = c->narrower[s];
        if (narrower < 0 || (s == held && keeps)) continue;
        for (double *gains = here; gains; gains = gains == here ? there : 0) {
            const double instead = gains[narrower] - rules->nothing;
            if (instead > rules->no_use / 2 && instead < gains[s]) gains[s] = instead;
        }
    }
}

/* `gains`: each job stays where it is or moves; `elsewhere`: nobody is anywhere. Both have
 * `columns` to a row. `extra`: what each job gains besides, or null; `forbidden`: states that are
 * of no use to a job, or null, as those are that its class does not have, and those that its epoch
 * `never` ends on. */
void boa_prospects(const Jobs *jobs, double horizon, int64_t columns, const Rules *rules,
                   const double *extra, const uint8_t *forbidden, double *gains,
                   double *elsewhere) {
    const double no_use = rules->no_use;
    for (int64_t n = 0; n < jobs->classes; n++) {
        const Class *c = jobs->of[n];
        for (int64_t j = jobs->rows[n]; j < jobs->rows[n + 1]; j++) {
            const int64_t epoch = jobs->epoch[j], held = jobs->held[j];
            const double left = jobs->left[j], *times = c->times + epoch * c->states;
            const double lost = jobs->lost ? jobs->lost[j] : 0.0, ends = ends_in(jobs, c, j);
            const double waits = c->weight * horizon + starts(c, epoch, left);
            double *here = gains + j * columns, *there = elsewhere + j * columns;
            for (int64_t s = 0; s < c->states; s++)
                here[s] = there[s] =
                    (waits - spent(c, s, epoch, left, c->rescale_s, horizon)) / horizon;
            if (held >= 0)
                here[held] = (waits - spent(c, held, epoch, left, jobs->pause[j], horizon)) / horizon;
            for (int64_t s = 0; s < columns; s++) {
                if (s >= c->states || times[s] >= rules->never ||
                    (forbidden && forbidden[j * columns + s]))
                    here[s] = there[s] = no_use;
                else if (extra) here[s] += extra[j], there[s] += extra[j];
            }
            if (held >= 0 && lost > 0) here[held] += lost * c->values[held] / horizon;
            if (c->narrower) leave_useless(rules, c, held, ends, here, there);
            if (ends < c->rescale_s + lost && here[held] > no_use / 2)
                for (int64_t s = 0; s < columns; s++)
                    if (s != held) here[s] = no_use;
        }
    }
}

/* Where jobs are by then on what they hold. `ends`: those that are done before. */
void boa_later(const Jobs *jobs, double seconds, int64_t *epoch, double *left, double *pause,
               uint8_t *ends) {
    for (int64_t n = 0; n < jobs->classes; n++) {
        const Class *c = jobs->of[n];
        for (int64_t j = jobs->rows[n]; j < jobs->rows[n + 1]; j++) {
            const int64_t held = jobs->held[j];
            epoch[j] = jobs->epoch[j], left[j] = jobs->left[j], pause[j] = jobs->pause[j];
            ends[j] = 0;
            if (held < 0) continue;
            const double at = began(c, held, epoch[j], left[j]) + larger(seconds - pause[j], 0.0);
            const int64_t then = epoch_at(c, held, epoch[j], at);
            if (then == c->epochs) {
                ends[j] = 1;
                continue;
            }
            left[j] = (c->reached[(then + 1) * c->states + held] - at) /
                      c->times[then * c->states + held];
            epoch[j] = then;
            pause[j] = larger(pause[j] - seconds, 0.0);
        }
    }
}
