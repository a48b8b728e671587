# pareto.gp - quality against latency, a panel for each contract and batch size; better is up and to
# the left. A sweep of LLaDA is a curve, LLaMA a crossed point with faint guides.
columns = narrow || panel_count == 1 ? 1 : 2
rows = int(ceil(panel_count / (1.0 * columns)))
eval key_plan(1, 22)
eval begin(rows * (narrow ? 7.4 : (columns > 1 ? 8 : 10)) + (narrow ? 0.45 * key_rows : 0))
stats $points using 5 nooutput name 'a'
stats $points using 6 nooutput name 'b'
lo = a_min; hi = b_max
pad = quality_log ? (hi / lo)**0.07 : (hi > lo ? 0.07 * (hi - lo) : 1)
lo = quality_log ? lo / pad : lo - pad; hi = quality_log ? hi * pad : hi + pad
set yrange [lo:hi]
if (quality_lower) {set yrange [hi:lo]}
if (quality_log) {set logscale y; eval log_tics('y', lo, hi)}
set logscale x 2
set bars small
set multiplot layout rows, columns margins char 9, char 2, char (4 + 1.3 * key_rows), char 2.2 \
    spacing char 9, char 6.2
do for [p = 1:panel_count] {
    set title panel_title[p] textcolor rgb '#202020'
    set xlabel cost_label
    set xrange [panel_lo[p] / 1.3 : panel_hi[p] * 1.5]
    unset ylabel
    if (p % columns == 1 || columns == 1) {
        set ylabel quality_label . (quality_lower ? ', better is up' : '')
    }
    unset key; unset object 1; unset arrow
    if (ok(cross_at[p])) {
        if (ok(cross_lo[p])) {
            left = cross_lo[p] > panel_lo[p] / 1.3 ? cross_lo[p] : panel_lo[p] / 1.3
            right = ok(cross_hi[p]) ? cross_hi[p] : panel_hi[p] * 1.5
            set object 1 rectangle from left, graph 0 to right, graph 1 behind \
                fillcolor rgb '#767676' fillstyle transparent solid 0.12 noborder
        }
        set arrow 1 from cross_at[p], graph 0 to cross_at[p], graph 1 nohead back \
            linecolor rgb '#0072B2' linewidth 0.7 dashtype 2
    }
    if (ok(guide_cost[p])) {
        set arrow 2 from guide_cost[p], graph 0 to guide_cost[p], graph 1 nohead back \
            linecolor rgb '#D55E00' linewidth 0.6 dashtype 3
        set arrow 3 from graph 0, first guide_quality[p] to graph 1, first guide_quality[p] \
            nohead back linecolor rgb '#D55E00' linewidth 0.6 dashtype 3
    }
    unset label
    if (p == 1) {
        set arrow 4 from screen key_x(0) - 0.03, char key_y(0) to screen key_x(0), char key_y(0) \
            nohead linecolor rgb '#9A9A9A' linewidth 1.6
        set label 1 'best quality within the time' at screen key_x(0), char key_y(0) offset 0.8, 0
        eval key_series(1, 2)
    }
    plot $front index p - 1 using 1:2 with steps linecolor rgb '#9A9A9A' linewidth 1.6, \
        for [k = 1:series_count] $points index k - 1 \
            using (series_panel[k] == p ? $1 : NaN):4 with lines \
            linecolor rgb look(k) linewidth 1.2 \
            dashtype dash(k), \
        for [k = 1:series_count] $points index k - 1 \
            using (series_panel[k] == p ? $1 : NaN):4:2:3:5:6 with xyerrorbars \
            linecolor rgb look(k) linewidth 0.9 \
            pointtype 0 pointsize 0, \
        for [k = 1:series_count] $points index k - 1 \
            using (series_panel[k] == p && $8 == 0 ? $1 : NaN):4 with points \
            linecolor rgb look(k) \
            pointtype mark(k) \
            pointsize (series_kind[k] == 1 ? 0.9 : 0.6), \
        for [k = 1:series_count] $points index k - 1 \
            using (series_panel[k] == p && $8 != 0 ? $1 : NaN):4 with points \
            linecolor rgb '#ffffff' \
            pointtype open(k) + 1 pointsize 0.65, \
        for [k = 1:series_count] $points index k - 1 \
            using (series_panel[k] == p && $8 != 0 ? $1 : NaN):4 with points \
            linecolor rgb look(k) \
            pointtype open(k) pointsize 0.65, \
        $labels index p - 1 using 1:2:4:(rgb($3)) with labels offset character -1.3, 0.5 \
            textcolor rgb variable, \
        for [i = 1:tips(p)] $tips index p - 1 using 1:2:5 @tip
}
unset multiplot
unset output
