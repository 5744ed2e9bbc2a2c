// Browsers do not let pages from disk read the search index. Say so where the search field would be.
if (location.protocol === "file:") {
  document.addEventListener("DOMContentLoaded", () => {
    const header = document.querySelector(".md-header__inner");
    const note = document.createElement("span");
    note.className = "search-note";
    note.textContent = "Search: python -m http.server -d site";
    note.title = "Search works over HTTP. Run this command beside the folder, and open http://127.0.0.1:8000.";
    header.appendChild(note);
  });
}
