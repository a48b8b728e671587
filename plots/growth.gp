# growth.gp - memory beyond the weights against the length of the answer, with fitted power laws.
eval begin((narrow ? 5.6 : 6.6) + 0.43 * series_count)
set logscale xy 2
set xlabel 'answer length n (tokens)'
set ylabel 'memory beyond the weights'
bytes(v) = v >= 2**30 ? sprintf('%.3g GiB', v / 2**30) : \
    (v >= 2**20 ? sprintf('%.3g MiB', v / 2**20) : sprintf('%.3g KiB', v / 1024))
stats $points using 1 nooutput name 'x'
stats $points using 2 nooutput name 'y'
set xrange [x_min / 1.3 : x_max * 1.3]
set yrange [y_min / 1.5 : y_max * 1.5]
factor = y_max / y_min > 64 ? 4 : 2
set ytics ()
do for [e = int(floor(log(y_min / 1.5) / log(2))):int(ceil(log(y_max * 1.5) / log(2)))] {
    if (e % (factor / 2) == 0) {set ytics add (bytes(2.0**e) 2.0**e)}
}
set bmargin 4 + 1.3 * series_count
set key at screen 0.02, char (0.4 + 1.3 * series_count) left top vertical maxrows series_count \
    Left reverse samplen 1
set lmargin 12
law(k, x) = fit_straight[k] == 1 ? fit_at[k] + fit_slope[k] * x \
    : exp(fit_at[k] + fit_slope[k] * log(x))
# LLaDA's blue darkens from curve to curve of a sweep; a method has one look in all figures.
look(k) = series_fill[k]
mark(k) = is_plain(k) ? 7 : variant(series_kind[k], series_number[k])
open(k) = is_plain(k) ? 6 : hollow(series_kind[k], series_number[k])
plot for [k = 1:series_count] law(k, x) with lines dashtype dash(k) \
        linecolor rgb look(k) linewidth 1, \
    for [k = 1:series_count] $points index k - 1 using 1:2 with points \
        linecolor rgb look(k) \
        pointtype mark(k) \
        pointsize (series_kind[k] == 1 ? 0.9 : 0.55) title series_name[k], \
    for [i = 1:tips(1)] $tips index 0 using 1:2:5 @tip
unset output
