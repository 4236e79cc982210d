ids => {
    const main = document.querySelector('main').cloneNode(true);
    main.querySelectorAll('.lines').forEach(lines => lines.remove());
    const typed = [...document.querySelectorAll('main input, main option')].map(field => field.value).join(' ');
    const short = [...main.querySelectorAll('code.id[data-value]')].map(id => id.dataset.value);
    return ids.some(id => (main.textContent + typed).includes(id) || short.includes(id));
}
