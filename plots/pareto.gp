# pareto.gp - quality against latency, one panel a batch size; better is up and to the left.
# A sweep of LLaDA is a curve, LLaMA a crossed point with faint guides.
columns = narrow ? 1 : (panel_count < 3 ? panel_count : (panel_count == 4 ? 2 : 3))
rows = int(ceil(panel_count / (1.0 * columns)))
eval begin(rows * (narrow || columns > 1 ? 8 : 10))
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
# The key is made of labels below the panels: a key of gnuplot's is no wider than one panel.
longest = 22
do for [k = 1:series_count] {
    longest = strlen(series_name[k]) > longest ? strlen(series_name[k]) : longest
}
key_columns = narrow ? (longest > 24 ? 1 : 2) : (longest > 24 ? (longest > 34 ? 2 : 3) : 4)
names = 1
do for [k = 1:series_count] {if (series_panel[k] == 1) {names = names + 1}}
key_rows = int(ceil(names / (1.0 * key_columns)))
key_x(i) = 0.08 + (i % key_columns) * 0.92 / key_columns
key_y(i) = 0.8 + 1.3 * (key_rows - 1 - i / key_columns)
top = strlen(note_good[1] . note_fast[1]) ? 4 : 2
set multiplot layout rows, columns margins char 9, char 2, char (4 + 1.3 * key_rows), char top \
    spacing char 9, char (top + 4)
do for [p = 1:panel_count] {
    notes = note_good[p] . (strlen(note_good[p]) && strlen(note_fast[p]) ? "\n" : '') . note_fast[p]
    set title sprintf("batch %g%s%s", panel_batch[p], strlen(notes) ? "\n" : '', notes) \
        textcolor rgb '#202020'
    set xlabel cost_label
    set xrange [panel_lo[p] / 1.3 : panel_hi[p] * 1.5]
    unset ylabel
    if (p % columns == 1 || columns == 1) {
        set ylabel quality_label . (quality_lower ? ', better is up' : '')
    }
    unset key; unset object 1; unset arrow
    if (ok(cross_at[p])) {
        left = ok(cross_lo[p]) ? cross_lo[p] : cross_at[p]
        if (ok(cross_hi[p])) {
            set object 1 rectangle from left, graph 0 to cross_hi[p], graph 1 behind \
                fillcolor rgb '#0072B2' fillstyle transparent solid 0.12 noborder
        } else {
            set object 1 rectangle from left, graph 0 to graph 1, graph 1 behind \
                fillcolor rgb '#0072B2' fillstyle transparent solid 0.12 noborder
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
        set label 1 'best within the budget' at screen key_x(0), char key_y(0) offset 0.8, 0
        i = 0
        do for [k = 1:series_count] {
            if (series_panel[k] == 1) {
                i = i + 1
                set label i + 1 series_name[k] at screen key_x(i), char key_y(i) offset 1.5, -0.25 \
                    point pointtype variant(series_kind[k], series_variant[k]) \
                    linecolor rgb colour(series_kind[k])
            }
        }
    }
    plot $front index p - 1 using 1:2 with steps linecolor rgb '#9A9A9A' linewidth 1.6, \
        for [k = 1:series_count] $points index k - 1 \
            using (series_panel[k] == p ? $1 : NaN):4 with lines \
            linecolor rgb colour(series_kind[k]) linewidth 1.2 dashtype series_variant[k], \
        for [k = 1:series_count] $points index k - 1 \
            using (series_panel[k] == p ? $1 : NaN):4:2:3:5:6 with xyerrorbars \
            linecolor rgb colour(series_kind[k]) linewidth 0.9 \
            pointtype variant(series_kind[k], series_variant[k]) \
            pointsize (series_kind[k] == 1 ? 0.9 : 0.45), \
        $labels index p - 1 using 1:2:4:(rgb($3)) with labels offset character -1.3, 0.5 \
            textcolor rgb variable
}
unset multiplot
unset output
