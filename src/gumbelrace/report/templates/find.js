"use strict";
/* Searches persons by name. Every text from the data becomes text on the page, never markup.

   The element "findable" holds JSON:
   columns  titles of the columns of mentions
   labels   of a person's details, for each of its texts
   rest     what is said of persons whose mentions are not on the page; {} is the number of the cluster
   persons  [cluster, name, head, alarm, texts, mentions], the last two only for some; a head is what
            stands beside the name, an alarm what is doubtful, or "" */
(() => {
  const data = JSON.parse(document.getElementById("findable").textContent);
  const box = document.getElementById("wanted"), found = document.getElementById("found");
  const matches = document.getElementById("matches"), MOST = 50;
  const folded = text => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const names = data.persons.map(person => folded(person[1]) + " #" + person[0]);

  const element = (tag, text, parent) => {
    const made = document.createElement(tag);
    if (text) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  };

  const table = rows => {
    const scrolls = element("div"), made = element("table", "", scrolls);
    scrolls.className = "scrolls";
    scrolls.tabIndex = 0;
    const head = element("tr", "", element("thead", "", made));
    data.columns.forEach(title => { element("th", title, head).scope = "col"; });
    const body = element("tbody", "", made);
    rows.forEach(row => {
      const line = element("tr", "", body);
      row.forEach(cell => element("td", String(cell), line));
    });
    return scrolls;
  };

  const fill = (details, person) => {
    const [cluster, , , , texts, mentions] = person;
    if (texts) {
      const lines = element("dl", "", details);
      lines.className = "lines";
      texts.forEach((text, k) => {
        if (!text) return;
        const pair = element("div", "", lines);
        element("dt", data.labels[k], pair);
        element("dd", text, pair);
      });
    }
    if (mentions) details.append(table(mentions));
    if (!mentions || mentions.length < person[6]) element("p", data.rest.replace("{}", cluster), details);
  };

  const entry = person => {
    const details = element("details"), summary = element("summary", person[1] + ", " + person[2], details);
    if (person[3]) element("span", " " + person[3], summary).className = "verdict open";
    details.addEventListener("toggle", () => { if (details.childElementCount === 1) fill(details, person); });
    return details;
  };

  const search = () => {
    const words = folded(box.value).split(/\s+/).filter(Boolean);
    const hits = [];
    if (words.length) names.forEach((name, k) => { if (words.every(word => name.includes(word))) hits.push(k); });
    matches.replaceChildren(...hits.slice(0, MOST).map(k => entry(data.persons[k])));
    found.textContent = !words.length ? "" : hits.length > MOST
      ? `${hits.length} found; the first ${MOST} are shown` : `${hits.length} found`;
  };

  document.getElementById("finder").hidden = false;
  box.addEventListener("input", search);
  search();
})();
