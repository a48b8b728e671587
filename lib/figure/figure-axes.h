/* figure-axes.h - sets up the two axes of the figures that show cost and quality. */
#pragma once

#include "lib/figure/figure.h"

struct axes {
    struct figure *f;
    const char *cost, *quality; /* metrics; borrowed */
    double divide_x, divide_y;  /* a value of the record is divided by this before it is drawn */
    int log_y, cost_alone;      /* cost_alone 1: a row may lack its quality */
    int lower;                  /* 1: less quality is better */
};

/* Fills the table with the rows of cost and quality that can be drawn, in the units of the axes,
 * and sets the labels of the axes in the script. */
void figure_axes_load(struct axes *axes, struct figure *figure, const struct runset *set,
                      const struct figure_request *request, struct config_table *table,
                      int cost_alone);
/* The text that a pointer shows at a row: "llada-demo, 8 steps: end-to-end latency 18.2 [17.9,
 * 18.6] ms, accuracy 96 [93, 98] %". The caller frees. */
char *figure_axes_tip(const struct axes *axes, const struct config_row *row);
