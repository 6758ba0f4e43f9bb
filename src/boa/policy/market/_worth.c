/* The value to go of worth.py, operation by operation, for machines that have a C compiler.
 *
 * Plain C without Python: worth.py loads it through ctypes and falls back to NumPy without it.
 */
#include <stdint.h>

/* `afters` and `dollars`: epochs × states, from the end of every epoch on. `work`: 2 × states. */
void boa_worth(int64_t epochs, int64_t states, double rescale_s, const double *times,
               const double *rates, const double *values, double *afters, double *dollars,
               double *work) {
    double *after = work, *bill = work + states;
    for (int64_t s = 0; s < states; s++) after[s] = bill[s] = 0.0;
    for (int64_t n = epochs - 1; n >= 0; n--) {
        const int64_t at = n * states;
        int64_t best = 0;
        double least = 0.0;
        for (int64_t s = 0; s < states; s++) {
            afters[at + s] = after[s], dollars[at + s] = bill[s];
            after[s] = values[s] * times[at + s] + after[s];
            bill[s] = rates[s] * times[at + s] + bill[s];
            const double entered = after[s] + rescale_s * values[s];
            if (s == 0 || entered < least) least = entered, best = s;
        }
        const double paid = bill[best] + rescale_s * rates[best];
        for (int64_t s = 0; s < states; s++)
            if (after[s] > least) after[s] = least, bill[s] = paid;
    }
}
