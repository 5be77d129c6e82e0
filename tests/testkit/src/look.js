// Lists what is wrong with how the page looks, and tells it to the frame around it.
addEventListener('load', () => {
  const faults = [];
  const root = document.documentElement;
  if (root.clientWidth !== innerWidth && root.clientWidth + 20 < innerWidth) faults.push(`${root.clientWidth} of ${innerWidth} pixels`);
  for (const table of document.querySelectorAll('details:not(.size) table')) {
    if (printed && !table.closest('details.size') && !table.checkVisibility())
      faults.push(`not on paper: the table of ${table.closest('details').textContent.slice(0, 60)}`);
  }
  if (!printed) document.querySelectorAll('details').forEach(part => part.open = true);
  if (root.scrollWidth > root.clientWidth) {
    const wide = [...document.querySelectorAll('body *')].filter(part => part.getBoundingClientRect().right > root.clientWidth && !part.closest('.scroll, .plot'));
    faults.push(`the page is ${root.scrollWidth} pixels wide in ${root.clientWidth}: ${wide.map(part => part.tagName + ' ' + part.textContent.slice(0, 40))}`);
  }
  for (const part of document.querySelectorAll('.plot, .scroll')) {
    if (part.scrollWidth > part.clientWidth && !printed && !getComputedStyle(part).backgroundImage.includes('gradient'))
      faults.push(`nothing hints that there is more of ${part.textContent.slice(0, 40)}`);
  }
  for (const legend of document.querySelectorAll('.legend')) {
    const edge = legend.getBoundingClientRect();
    [...legend.children].map(item => item.getBoundingClientRect()).reduce((before, item) => {
      if (item.top >= before.bottom && before.right + item.width + 40 < edge.right)
        faults.push(`a legend is not in a line: ${legend.textContent.slice(0, 80)}`);
      return item;
    });
  }
  // Browsers end lines behind hyphens, also those of options.
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    for (const option of words.currentNode.data.matchAll(/--[a-z][a-z-]+/g)) {
      const range = document.createRange();
      range.setStart(words.currentNode, option.index);
      range.setEnd(words.currentNode, option.index + option[0].length);
      if (new Set([...range.getClientRects()].map(line => line.top)).size > 1) faults.push(`${option[0]} is broken`);
    }
  }
  for (const svg of document.querySelectorAll('svg[viewBox]')) {
    const name = svg.getAttribute('aria-label');
    const edge = svg.getBoundingClientRect();
    const scale = edge.width / svg.viewBox.baseVal.width;
    // The box of a text is higher than its letters.
    const texts = [...svg.querySelectorAll('text')].filter(text => text.textContent.trim()).map(text => {
      const box = text.getBoundingClientRect();
      return { said: text.textContent, left: box.left, right: box.right, top: box.top + 2.5 * scale, bottom: box.bottom - 2.5 * scale };
    });
    texts.forEach((own, place) => {
      if (own.left < edge.left - 1 || own.right > edge.right + 1 || own.top < edge.top - 1 || own.bottom > edge.bottom + 1)
        faults.push(`'${own.said}' leaves '${name}'`);
      for (const other of texts.slice(place + 1))
        if (own.left < other.right && other.left < own.right && own.top < other.bottom && other.top < own.bottom)
          faults.push(`'${own.said}' meets '${other.said}' in '${name}'`);
    });
  }
  // The contrast of colours as WCAG 2 defines it: 4.5 for texts, 3 for what is drawn.
  const light = name => {
    const part = document.body.appendChild(document.createElement('i'));
    part.style.color = `var(${name})`;
    const parts = getComputedStyle(part).color.match(/[\d.]+/g).slice(0, 3).map(value => value / 255);
    part.remove();
    const [r, g, b] = parts.map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const check = (name, least, page = '--page') => {
    const [low, high] = [light(name), light(page)].sort((a, b) => a - b);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < least) faults.push(`${name} has a contrast of ${contrast.toFixed(2)} on ${page}`);
  };
  for (const name of ['--ink', '--muted', '--warn', '--error']) check(name, 4.5);
  check('--warn', 4.5, '--warn-page');
  check('--error', 4.5, '--error-page');
  for (let series = 0; series < 6; series++) check(`--s${series}`, 3);
  parent.postMessage('looked: ' + faults.join('\n'), '*');
});
