# drift.gp - drift of the machine during a run: each latency relative to the median of its
# configuration.
eval begin(width_cm > 10 ? 7 : 6)
array kind_label[3] = ['LLaDA', 'LLaMA', 'latent thoughts']
set xlabel x_label
set ylabel 'latency (% of its median)'
set tmargin 3
set key at graph 0.5, screen 0.99 center top horizontal Left reverse samplen 2
set arrow 1 from graph 0, first 100 to graph 1, first 100 nohead back \
    linecolor rgb grey linewidth 0.8
plot for [k = 0:2] $points index k using 1:2 with points linecolor rgb colour(k) \
        pointtype point(k) pointsize 0.3, \
    for [k = 0:2] $trend index k using 1:2 with lines linecolor rgb colour(k) linewidth 1.6 \
        dashtype kind_dash(k) \
        title (kind_count[k + 1] > 0 ? kind_label[k + 1] : ''), \
    for [i = 1:tips(1)] $tips index 0 using 1:2:5 @tip
unset output
