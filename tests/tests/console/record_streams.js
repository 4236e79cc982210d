window.streams = [];
const Plain = window.EventSource;
window.EventSource = class extends Plain {
    constructor(address) { super(address); streams.push(this); }
};
