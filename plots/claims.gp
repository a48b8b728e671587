# claims.gp - published speeds: the claimed rate against the share of the roofline that it would
# need. A claim right of the line is beyond the limits of its card.
eval begin(width_cm > 10 ? 8 : 7)
array kind_label[2] = ['diffusion', 'autoregressive']
set logscale xy
set xrange [share_lo / 1.5:share_hi * 2]
eval log_tics('x', share_lo / 1.5, share_hi * 2)
set xlabel 'share of the roofline'
set ylabel 'claimed tokens/s'
set tmargin 3
set key at graph 0.5, screen 0.99 center top horizontal Left reverse samplen 2
set arrow 1 from 1, graph 0 to 1, graph 1 nohead back linecolor rgb grey dashtype 2
plot for [k = 0:1] $points index k using 1:2 with points linecolor rgb colour(k) \
        pointtype point(k) pointsize 0.6 title (kind_count[k + 1] > 0 ? kind_label[k + 1] : ''), \
    for [i = 1:tips(1)] $tips index 0 using 1:2:5 @tip
unset output
