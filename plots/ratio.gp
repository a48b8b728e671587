# ratio.gp - heat map of the latency of LLaDA divided by the latency of LLaMA; heat.gp draws it. A
# cell has the colour of the faster model.
set palette defined (0 '#00456B', 1 '#0071B2', 3 '#FEFEFE', 5 '#D45E00', 6 '#8A3E00')
box_label = value_label . ', LLaDA / LLaMA'
box_tic(v) = v < 0 ? sprintf('1/%.3g×', 2**(-v)) : sprintf('%.3g×', 2**v)
