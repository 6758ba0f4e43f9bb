/* The descent of learning.py, operation by operation, for machines that have a C compiler.
 *
 * Plain C without Python: learning.py loads it through ctypes and falls back to NumPy without it.
 */
#include <math.h>
#include <stdint.h>

#define P 7 /* alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r, gamma */

enum { MAX_ITERATIONS = 60 };
static const double SMOOTH = 1e-6, ENOUGH = 1e-8;
static const double FIRST_DAMPING = 1e-3, LEAST_DAMPING = 1e-9, MOST_DAMPING = 1e6;
static const double GAMMA_WEIGHT = 1e-3, SLOPE_WEIGHT = 1e-2;

typedef struct {
    double nodes, gpus, local_batch, step_s, accumulation_s;
} Sample;

typedef struct {
    double loss, gradient[P], curvature[P][P];
} Local;

/* Squares and products of one kind of log error, summed over samples. */
typedef struct {
    double squares, gradient[P], curvature[P][P];
} Errors;

static void add_error(Errors *errors, double residual, const double *row) {
    errors->squares += residual * residual;
    for (int i = 0; i < P; i++) {
        errors->gradient[i] += row[i] * residual;
        for (int j = 0; j <= i; j++) errors->curvature[i][j] += row[i] * row[j];
    }
}

/* The errors of one sample's accumulation and step time, with their derivatives. */
static void add_sample(const Sample *s, const double *x, Errors *passes, Errors *steps) {
    const double b = s->local_batch, gamma = x[6];
    const double compute = x[0] + x[1] * b;
    const double by_pass[P] = {1.0 / compute, b / compute, 0, 0, 0, 0, 0};
    add_error(passes, log(compute / s->accumulation_s), by_pass);
    if (s->gpus <= 1) {
        add_error(steps, log(compute / s->step_s), by_pass);
        return;
    }
    const int at = s->nodes > 1 ? 2 : 4;
    const double beyond = s->gpus > 2 ? s->gpus - 2 : 0;
    const double network = x[at] + x[at + 1] * beyond;
    const double larger = compute > network ? compute : network;
    const double log_q = log((compute > network ? network : compute) / larger);
    const double power = exp(gamma * log_q);
    const double extra = log1p(power) / gamma, smaller = power / (1.0 + power);
    const double share = compute >= network ? 1.0 - smaller : smaller;
    double by_step[P] = {share / compute, share * b / compute, 0, 0, 0, 0, 0};
    by_step[at] = (1.0 - share) / network;
    by_step[at + 1] = by_step[at] * beyond;
    by_step[6] = (smaller * log_q - extra) / gamma;
    add_error(steps, log(larger / s->step_s) + extra, by_step);
}

/* The root of the mean square, as the quadratic that touches it from above. */
static void add_root(Local *local, const Errors *errors, int64_t n) {
    const double root = sqrt(errors->squares / (double)n + SMOOTH * SMOOTH);
    const double weight = 1.0 / ((double)n * root);
    local->loss += root;
    for (int i = 0; i < P; i++) {
        local->gradient[i] += errors->gradient[i] * weight;
        for (int j = 0; j <= i; j++) local->curvature[i][j] += errors->curvature[i][j] * weight;
    }
}

static void add_penalties(Local *local, const double *x) {
    const double excess = x[6] - 1.0;
    local->loss += GAMMA_WEIGHT * excess * excess;
    local->gradient[6] += 2.0 * GAMMA_WEIGHT * excess;
    local->curvature[6][6] += 2.0 * GAMMA_WEIGHT;
    for (int a = 2; a <= 4; a += 2) {
        const double ratio = x[a + 1] / x[a], weight = 2.0 * SLOPE_WEIGHT;
        const double by_alpha = -ratio / x[a], by_beta = 1.0 / x[a];
        local->loss += SLOPE_WEIGHT * ratio * ratio;
        local->gradient[a] += weight * ratio * by_alpha;
        local->gradient[a + 1] += weight * ratio * by_beta;
        local->curvature[a][a] += weight * by_alpha * by_alpha;
        local->curvature[a + 1][a] += weight * by_alpha * by_beta;
        local->curvature[a + 1][a + 1] += weight * by_beta * by_beta;
    }
}

static void look(const Sample *samples, int64_t n, const double *x, Local *local) {
    Errors passes = {0}, steps = {0};
    for (int64_t k = 0; k < n; k++) add_sample(samples + k, x, &passes, &steps);
    *local = (Local){0};
    add_root(local, &passes, n);
    add_root(local, &steps, n);
    add_penalties(local, x);
}

/* Solve (scaled curvature + damping) · step = gradient in the m free parameters, by Cholesky. */
static void damped_step(const Local *local, const int *free, int m, double damping, double *step) {
    double scale[P], factor[P][P], y[P];
    for (int i = 0; i < m; i++) scale[i] = 1.0 / sqrt(local->curvature[free[i]][free[i]] + 1e-300);
    for (int i = 0; i < m; i++) {
        y[i] = local->gradient[free[i]] * scale[i];
        for (int j = 0; j <= i; j++) {
            double sum = local->curvature[free[i]][free[j]] * scale[i] * scale[j];
            if (i == j) sum += damping;
            for (int k = 0; k < j; k++) sum -= factor[i][k] * factor[j][k];
            factor[i][j] = i == j ? sqrt(sum > 1e-14 ? sum : 1e-14) : sum / factor[j][j];
        }
        for (int k = 0; k < i; k++) y[i] -= factor[i][k] * y[k];
        y[i] /= factor[i][i];
    }
    for (int i = m - 1; i >= 0; i--) {
        for (int k = i + 1; k < m; k++) y[i] -= factor[k][i] * y[k];
        y[i] /= factor[i][i];
        step[free[i]] = y[i] * scale[i];
    }
}

/* Move x, within its bounds, to where the loss is least. */
void boa_learn(int64_t n, const Sample *samples, const double *low, const double *high, double *x) {
    Local here, there;
    double damping = FIRST_DAMPING;
    look(samples, n, x, &here);
    for (int round = 0; round < MAX_ITERATIONS && damping <= MOST_DAMPING; round++) {
        int free[P], m = 0;
        double candidate[P], step[P] = {0};
        for (int i = 0; i < P; i++)
            if (here.gradient[i] > 0 ? x[i] > low[i] : x[i] < high[i]) free[m++] = i;
        damped_step(&here, free, m, damping, step);
        for (int i = 0; i < P; i++) candidate[i] = fmin(fmax(x[i] - step[i], low[i]), high[i]);
        look(samples, n, candidate, &there);
        const double gain = here.loss - there.loss;
        if (gain > 0) {
            for (int i = 0; i < P; i++) x[i] = candidate[i];
            here = there;
            damping = fmax(damping / 5, LEAST_DAMPING);
        } else {
            damping *= 4;
        }
        if (fabs(gain) <= ENOUGH * here.loss) break;
    }
}
