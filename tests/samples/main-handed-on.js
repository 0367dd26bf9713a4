const main = async () => console.log('once');
Promise.resolve().then(main)
