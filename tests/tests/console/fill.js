// Types into the field with a label; whether it is there.
(name, text) => {
    const label = [...document.querySelectorAll('label')].find(label => label.textContent === name);
    const field = label && document.getElementById(label.htmlFor);
    if (!field) return false;
    const kind = field.tagName === 'TEXTAREA' ? HTMLTextAreaElement : field.tagName === 'SELECT'
        ? HTMLSelectElement : HTMLInputElement;
    Object.getOwnPropertyDescriptor(kind.prototype, 'value').set.call(field, text);
    field.dispatchEvent(new Event(field.tagName === 'SELECT' ? 'change' : 'input', { bubbles: true }));
    return true;
}
