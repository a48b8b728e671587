# load.gp - latency of prompts that arrive against their rate, a curve for each setting. A dashed
# line and its band are the rate at which LLaDA takes as long as LLaMA.
eval key_plan(cross_count > 0, 24)
eval begin((narrow ? 6.4 : 7.4) + 0.45 * key_rows)
set logscale xy
set xrange [rate_lo / 1.2 : rate_hi * 1.2]
set yrange [cost_lo / 1.3 : cost_hi * 1.3]
set xtics ()
do for [i = 1:rate_count] {set xtics add (sprintf('%g', rates[i]) rates[i])}
eval log_tics('y', cost_lo / 1.3, cost_hi * 1.3)
set xlabel 'requests per second'
set ylabel cost_label
set bars small
set lmargin 9
set bmargin 4 + 1.3 * key_rows
unset key
do for [i = 1:cross_count] {
    left = ok(cross_lo[i]) && cross_lo[i] > rate_lo / 1.2 ? cross_lo[i] : rate_lo / 1.2
    right = ok(cross_hi[i]) ? cross_hi[i] : rate_hi * 1.2
    set object i rectangle from left, graph 0 to right, graph 1 behind \
        fillcolor rgb '#767676' fillstyle transparent solid 0.12 noborder
    set arrow i from cross_at[i], graph 0 to cross_at[i], graph 1 nohead back \
        linecolor rgb '#0072B2' linewidth 0.7 dashtype 2
}
if (cross_count > 0) {
    n = cross_count + 1
    set arrow n from screen key_x(0) - 0.03, char key_y(0) to screen key_x(0), char key_y(0) \
        nohead linecolor rgb '#0072B2' linewidth 0.7 dashtype 2
    set label 1 'as long as LLaMA' at screen key_x(0), char key_y(0) offset 0.8, 0
}
eval key_series(cross_count > 0, 2)
plot for [k = 1:series_count] $points index k - 1 using 1:2 with lines \
        linecolor rgb look(k) linewidth 1.2 dashtype dash(k), \
    for [k = 1:series_count] $points index k - 1 using 1:2:3:4 with yerrorbars \
        linecolor rgb look(k) linewidth 0.9 pointtype 0 pointsize 0, \
    for [k = 1:series_count] $points index k - 1 using 1:($5 == 0 ? $2 : NaN) with points \
        linecolor rgb look(k) pointtype mark(k) pointsize 0.6, \
    for [k = 1:series_count] $points index k - 1 using 1:($5 != 0 ? $2 : NaN) with points \
        linecolor rgb look(k) pointtype open(k) pointsize 0.65, \
    for [i = 1:tips(1)] $tips index 0 using 1:2:5 @tip
unset output
