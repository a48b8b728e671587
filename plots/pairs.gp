# pairs.gp - pairs of models, a row each: the time of LLaDA divided by the time of LLaMA.
eval begin(2.6 + 0.55 * pair_count)
longest = 0
do for [k = 1:pair_count] {
    longest = strlen(pair_name[k]) > longest ? strlen(pair_name[k]) : longest
}
share = (narrow ? 0.0205 : 0.0115) * longest + 0.02
set bars small
set yrange [0.4:pair_count + 0.6]
set grid noytics
set tmargin 3; set bmargin 3.4
set lmargin at screen (share < 0.6 ? share : 0.6)
set rmargin at screen 0.97
set ytics ()
do for [k = 1:pair_count] {set ytics add (pair_name[k] k)}
set ytics scale 0
set logscale x
set xrange [ratio_lo / 1.3:ratio_hi * 1.3]
eval log_tics('x', ratio_lo / 1.3, ratio_hi * 1.3)
set xlabel (narrow ? 'time, LLaMA = 1' : 'time of the diffusion model (autoregressive model = 1)')
set key at graph 0.5, screen 0.99 center top horizontal Left reverse samplen 2
set arrow 1 from 1, graph 0 to 1, graph 1 nohead back linecolor rgb grey dashtype 2
plot $points using 5:1:6:7 with xerrorbars pointtype 6 pointsize 0.6 linewidth 1 \
        linecolor rgb colour(0) title 'one token a step', \
    $points using 2:1:3:4 with xerrorbars pointtype 7 pointsize 0.6 linewidth 1 \
        linecolor rgb colour(0) title 'equal quality', \
    for [i = 1:tips(1)] $tips index 0 using 1:2:5 @tip
unset output
