// The change shown while a memory is edited: common words by the longest common subsequence.
"use strict";

const editor = document.getElementById("content");
const change = document.getElementById("change");

function words(text) {
  return text.match(/[\u3400-\u4dbf\u4e00-\u9fff]|[^\s\u3400-\u4dbf\u4e00-\u9fff]+|\s+/gu) ?? [];
}

function pieces(before, after) {
  const common = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1));
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      const same = before[i] === after[j];
      common[i][j] = same ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const found = [];
  for (let i = 0, j = 0; i < before.length || j < after.length;) {
    if (i < before.length && j < after.length && before[i] === after[j]) found.push(["span", before[i++], j++]);
    else if (i < before.length && (j === after.length || common[i + 1][j] >= common[i][j + 1])) found.push(["del", before[i++]]);
    else found.push(["ins", after[j++]]);
  }
  return found;
}

function showChange(shown) {
  const before = words(shown.dataset.before);
  const after = words(editor.value);
  change.hidden = shown.dataset.before === editor.value || before.length * after.length > 1e6;
  if (change.hidden) return;
  shown.replaceChildren(...pieces(before, after).map(([tag, text]) => {
    const element = document.createElement(tag);
    element.textContent = text;
    return element;
  }));
}

if (editor && change) {
  const shown = change.querySelector("[data-before]");
  editor.addEventListener("input", () => showChange(shown));
  showChange(shown);
}
