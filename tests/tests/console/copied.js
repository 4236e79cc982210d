// The text that gets into the clipboard when a part of the page is copied.
mark => {
    const range = document.createRange();
    mark(range);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    const copy = new ClipboardEvent('copy', { clipboardData: new DataTransfer(), bubbles: true, cancelable: true });
    document.body.dispatchEvent(copy);
    return copy.defaultPrevented ? copy.clipboardData.getData('text/plain') : 'as selected: ' + selection;
}
