# steps.gp - draws latency and, if the records have a quality, a second panel with the quality. The
# horizontal axis is the denoising steps. If a sweep varies something other than steps, the
# horizontal axis is the measured passes.
panels = judged ? 2 : 1
eval key_plan(0, 0)
eval begin((narrow && judged ? 13 : 7.4) + 0.45 * key_rows)
set logscale x 2
set xlabel work_label
set bars small
unset key
# Latents that are not fitted have zero steps. They are drawn to the left of the fewest steps.
stats $points using ($1 > 0) nooutput name 'any'
stats $points using ($1 > 0 ? $1 : any_max > 0 ? NaN : 1) nooutput name 'x'
stats $points using ($1 == 0) nooutput name 'zero'
none = x_min / 2
at(work) = work > 0 ? work : work == 0 ? none : NaN
set xrange [(zero_max > 0 ? none : x_min) / 1.3 : x_max * 1.5]
if (zero_max > 0) {set xtics add ('0' none)}
set multiplot layout (narrow ? panels : 1), (narrow ? 1 : panels) \
    margins char 9, char 2, char (4 + 1.3 * key_rows), char 2 \
    spacing char 10, char 6
set title title
array low[2] = [guide_cost_lo, guide_quality_lo]
array mid[2] = [guide_cost, guide_quality]
array high[2] = [guide_cost_hi, guide_quality_hi]
do for [p = 1:panels] {
    unset logscale y; set ytics autofreq; set yrange [*:*]
    if (p == 1) {
        set logscale y 2
        set yrange [cost_lo / 1.3 : cost_hi * 1.3]
        set ylabel cost_label
    } else {
        set ylabel quality_label . (quality_lower ? ', better is up' : '')
        stats $points using 6 nooutput name 'a'
        stats $points using 7 nooutput name 'b'
        same = !(b_max > a_min)
        lo = quality_log ? a_min / 1.06 : a_min - (same ? 0.5 : 0.06 * (b_max - a_min))
        hi = quality_log ? b_max * 1.06 : b_max + (same ? 0.5 : 0.06 * (b_max - a_min))
        set yrange [lo:hi]
        if (quality_lower) {set yrange [hi:lo]}
        if (quality_log) {set logscale y; eval log_tics('y', lo, hi)}
    }
    c = p == 1 ? 2 : 5
    unset object 1; unset arrow 1; unset label
    if (ok(mid[p])) {
        set object 1 rectangle from graph 0, first low[p] to graph 1, first high[p] behind \
            fillcolor rgb '#D55E00' fillstyle transparent solid 0.15 noborder
        set arrow 1 from graph 0, first mid[p] to graph 1, first mid[p] nohead back \
            linecolor rgb '#D55E00' linewidth 1
        # The label is above its line, or below it if there is no room above. Its horizontal place
        # is one with few curves. At many steps the cost is far above the line. The quality of some
        # steps is below the line.
        from = p == 1 ? cost_lo : lo; to = p == 1 ? cost_hi : hi
        up = !(to > from) ? 0.5 : (p == 1 || quality_log ? log(mid[p] / from) / log(to / from) : \
            (mid[p] - from) / (to - from))
        up = p == 2 && quality_lower ? 1 - up : up
        set label 1 'LLaMA' at graph (p == 1 ? 0.98 : 0.7), first mid[p] right \
            offset 0, (up > 0.9 ? -0.8 : 0.6) textcolor rgb '#D55E00'
    }
    if (p == 1) {eval key_series(0, 2)}
    plot $launches using (p == 1 ? at($1) : NaN):2 with points linecolor rgb '#9A9A9A' pointtype 7 \
            pointsize 0.22, \
        for [k = 1:series_count] $points index k - 1 \
            using (series_kind[k] == 1 ? NaN : at($1)):c with lines \
            linecolor rgb look(k) linewidth 1.2 \
            dashtype dash(k), \
        for [k = 1:series_count] $points index k - 1 \
            using (series_kind[k] == 1 ? NaN : at($1)):c:(at($1)):(at($1)):c + 1:c + 2 \
            with xyerrorbars \
            linecolor rgb look(k) linewidth 0.9 \
            pointtype 0 pointsize 0, \
        for [k = 1:series_count] $points index k - 1 \
            using (series_kind[k] == 1 || (p == 1 && $8 != 0) ? NaN : at($1)):c with points \
            linecolor rgb look(k) \
            pointtype mark(k) pointsize 0.6, \
        for [k = 1:series_count] $points index k - 1 \
            using (p == 1 && $8 != 0 && series_kind[k] != 1 ? at($1) : NaN):c with points \
            linecolor rgb '#ffffff' pointtype mark(k) \
            pointsize 0.65, \
        for [k = 1:series_count] $points index k - 1 \
            using (p == 1 && $8 != 0 && series_kind[k] != 1 ? at($1) : NaN):c with points \
            linecolor rgb look(k) \
            pointtype open(k) pointsize 0.65, \
        for [i = 1:labels > 0] $labels using (at($1)):(p == 1 ? $2 : $3):5:(rgb($4)) \
            with labels offset character 0.8, -0.7 textcolor rgb variable, \
        for [i = 1:tips(p)] $tips index p - 1 using (at($1)):2:5 @tip
}
unset multiplot
unset output
