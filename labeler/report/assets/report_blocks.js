/* The data blocks of a report: in its page, or in files next to it. */

/** The folder with the files. Its name is no part of the markup, so no markup can change it. */
const BLOCK_FOLDER = "records";

/** Return the value of a block. */
async function readBlock(id) {
  if (document.getElementById("index")) return unpackBlock(id);
  return unpack(await loadBlock(`${BLOCK_FOLDER}/${id}.js`));
}

/** Load the packed text of a block: as a script, since pages opened from a disk cannot fetch. */
function loadBlock(path) {
  const script = el("script", { src: path });
  const loaded = new Promise((done, fail) => {
    script.onerror = () => fail(new Error(`${path} is missing`));
    script.onload = () =>
      script.block === undefined ? fail(new Error(`${path} is damaged`)) : done(script.block);
  });
  document.head.append(script);
  return loaded.finally(() => script.remove());
}

/** Take the packed text of a block; the file of the block calls this. */
function receiveBlock(text) {
  document.currentScript.block = text;
}
