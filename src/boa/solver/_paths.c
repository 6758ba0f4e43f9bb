/* The shortest paths of path.py, operation by operation, for machines that have a C compiler.
 *
 * Plain C without Python: path.py loads it through ctypes and falls back to NumPy without it.
 * The same operations as there, so that both give the same results up to rounding (the build turns
 * off contraction to fused multiply-adds for that reason).
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__)
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif

typedef struct {
    int64_t epochs, states;
    const double *durations;  /* rows × epochs × states */
    const double *cost_rates; /* rows × states */
    const double *rescale_s;  /* rows */
    const int64_t *lengths;   /* epochs that each row really has */
} Block;

static int64_t argmin(const double *values, int64_t n) {
    int64_t best = 0;
    for (int64_t k = 1; k < n; k++)
        if (values[k] < values[best]) best = k;
    return best;
}

/* values = min(values, starting + m) + worth · duration; returns the least of them.
 * Eight running minima, so that the compiler can keep them in one vector register. */
#define LANES 8
WIDE static double advance(double *restrict values, const double *restrict starting,
                           const double *restrict worth, const double *restrict duration,
                           double m, int64_t n) {
    double lane[LANES], least = INFINITY;
    int64_t k = 0;
    for (int64_t l = 0; l < LANES; l++) lane[l] = INFINITY;
    for (; k + LANES <= n; k += LANES)
        for (int64_t l = 0; l < LANES; l++) {
            double moved = starting[k + l] + m;
            double before = values[k + l] < moved ? values[k + l] : moved;
            double value = before + worth[k + l] * duration[k + l];
            values[k + l] = value;
            lane[l] = value < lane[l] ? value : lane[l];
        }
    for (; k < n; k++) {
        double moved = starting[k] + m;
        double before = values[k] < moved ? values[k] : moved;
        values[k] = before + worth[k] * duration[k];
        least = values[k] < least ? values[k] : least;
    }
    for (int64_t l = 0; l < LANES; l++) least = lane[l] < least ? lane[l] : least;
    return least;
}

static int64_t first_equal(const double *values, int64_t n, double wanted) {
    int64_t k = 0;
    while (k < n - 1 && values[k] != wanted) k++;
    return k;
}

static void sweep(const Block *b, int64_t row, const double *worth, double *starting,
                  double *values, double *minima, int32_t *best) {
    const int64_t K = b->states;
    const double *duration = b->durations + row * b->epochs * K;
    for (int64_t k = 0; k < K; k++) values[k] = starting[k] = worth[k] * b->rescale_s[row];
    minima[0] = 0.0;
    for (int64_t j = 0; j < b->lengths[row]; j++, duration += K) {
        minima[j + 1] = advance(values, starting, worth, duration, minima[j], K);
        best[j + 1] = (int32_t)first_equal(values, K, minima[j + 1]);
    }
}

static void trace_back(const Block *b, int64_t row, const double *worth, const double *minima,
                       const int32_t *best, double *time, double *cost, int32_t *states) {
    const int64_t K = b->states;
    const double rescale_s = b->rescale_s[row];
    *time = *cost = 0.0;
    for (int64_t end = b->lengths[row]; end > 0;) {
        const int64_t k = best[end];
        const double *duration = b->durations + row * b->epochs * K + k;
        int64_t begin = end - 1;
        double least = INFINITY, ran = 0.0, held = rescale_s;
        for (int64_t a = end - 1; a >= 0; a--) {
            ran += duration[a * K];
            double value = minima[a] + worth[k] * (rescale_s + ran);
            if (value <= least) least = value, begin = a, held = rescale_s + ran;
        }
        *time += held;
        *cost += held * b->cost_rates[row * K + k];
        for (int64_t a = begin; a < end; a++) states[a] = (int32_t)k;
        end = begin;
    }
}

/* Without rescaling times every epoch chooses alone. */
static void free_moves(const Block *b, int64_t row, const double *worth, double *values,
                       double *time, double *cost, int32_t *states) {
    const int64_t K = b->states;
    *time = *cost = 0.0;
    for (int64_t j = 0; j < b->lengths[row]; j++) {
        const double *duration = b->durations + (row * b->epochs + j) * K;
        for (int64_t k = 0; k < K; k++) values[k] = worth[k] * duration[k];
        int64_t k = argmin(values, K);
        *time += duration[k];
        *cost += duration[k] * b->cost_rates[row * K + k];
        states[j] = (int32_t)k;
    }
}

int boa_shortest_paths(const Block *b, int64_t n, const int64_t *at, const double *time_weights,
                       const double *money_weights, double *times, double *costs,
                       int32_t *states) {
    const int64_t K = b->states;
    double *space = malloc(sizeof(double) * (3 * K + b->epochs + 1));
    int32_t *best = malloc(sizeof(int32_t) * (b->epochs + 1));
    if (!space || !best) {
        free(space), free(best);
        return 1;
    }
    double *worth = space, *starting = space + K, *values = space + 2 * K, *minima = space + 3 * K;
    for (int64_t q = 0; q < n; q++) {
        const int64_t row = at[q];
        for (int64_t k = 0; k < K; k++)
            worth[k] = time_weights[q] + money_weights[q] * b->cost_rates[row * K + k];
        if (b->rescale_s[row] > 0.0) {
            sweep(b, row, worth, starting, values, minima, best);
            trace_back(b, row, worth, minima, best, times + q, costs + q, states + q * b->epochs);
        } else {
            free_moves(b, row, worth, values, times + q, costs + q, states + q * b->epochs);
        }
    }
    free(space), free(best);
    return 0;
}
